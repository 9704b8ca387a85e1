// SPDX-License-Identifier: Apache-2.0
#include "batch/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace warpcipher {
namespace {

// The groups come in few kinds and mostly in runs, so the last one is tried first.
Group& group_of(std::vector<Group>& groups, std::size_t& last, const Message& message) {
  const Algorithm* algorithm = &message.algorithm();
  const auto is_its = [&](const Group& group) {
    return group.algorithm == algorithm && group.direction == message.direction;
  };
  if (last < groups.size() && is_its(groups[last])) return groups[last];
  for (last = 0; last < groups.size(); ++last) {
    if (is_its(groups[last])) return groups[last];
  }
  Group& made =
      groups.emplace_back(Group{algorithm, message.direction, algorithm->parallel(message.direction), {}, {}, 0});
  if (made.parallel) made.first_tile.push_back(0);
  return made;
}

// A radix sort by bytes of the lengths, of those alone that differ. By comparisons it took as long as the rest of the
// plan, for which a GPU waits.
void sort_longest_first(std::vector<std::uint32_t>& order, std::span<const Message> messages) {
  struct Entry {
    std::uint64_t key;
    std::uint32_t message;
  };
  std::vector<Entry> entries(order.size()), sorted(order.size());
  std::uint64_t differing = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    entries[k] = {~std::uint64_t{messages[order[k]].in_len}, order[k]};
    differing |= entries[k].key ^ entries[0].key;
  }
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if ((differing >> shift & 0xff) == 0) continue;
    std::array<std::uint32_t, 257> place{};
    for (const Entry& entry : entries) ++place[(entry.key >> shift & 0xff) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    for (const Entry& entry : entries) sorted[place[entry.key >> shift & 0xff]++] = entry;
    entries.swap(sorted);
  }
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = entries[k].message;
}

// 0: serial. 2: the host waits for the verdicts of tags, so nothing should have to wait behind it.
int rank_of(const Group& group, std::span<const Message> messages) {
  if (!group.parallel) return 0;
  return messages[group.messages[0]].is_authenticated_decryption() ? 2 : 1;
}

void order_groups(Plan& plan) {
  std::stable_sort(plan.groups.begin(), plan.groups.end(), [&](const Group& a, const Group& b) {
    const int x = rank_of(a, plan.messages), y = rank_of(b, plan.messages);
    return x != y ? x < y : x == 0 && a.most_units > b.most_units;
  });
  while (plan.beside + 1 < plan.groups.size() && !plan.groups[plan.beside].parallel) ++plan.beside;
}

}  // namespace

Plan make_plan(std::span<const Message> messages, std::uint32_t tile_units) {
  Plan plan{messages, tile_units, {}, 0};
  const int tile_log = std::countr_zero(tile_units);
  std::size_t last = 0;
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    Group& group = group_of(plan.groups, last, messages[i]);
    group.messages.push_back(i);
    if (!group.parallel) continue;
    const std::uint64_t units = messages[i].units();
    group.most_units = std::max(group.most_units, units);
    group.first_tile.push_back(group.first_tile.back() + ((units + tile_units - 1) >> tile_log));
  }
  for (Group& group : plan.groups) {
    if (group.parallel) continue;
    sort_longest_first(group.messages, messages);
    group.most_units = messages[group.messages[0]].units();
  }
  order_groups(plan);
  return plan;
}

Tile find_tile(const Plan& plan, const Group& group, std::uint64_t tile) {
  const auto after = std::upper_bound(group.first_tile.begin(), group.first_tile.end(), tile);
  const auto position = static_cast<std::size_t>(after - group.first_tile.begin()) - 1;
  const std::uint32_t message = group.messages[position];
  const std::uint64_t first_unit = (tile - group.first_tile[position]) * plan.tile_units;
  const std::uint64_t left = plan.messages[message].units() - first_unit;
  return {message, first_unit, std::min<std::uint64_t>(left, plan.tile_units)};
}

}  // namespace warpcipher
