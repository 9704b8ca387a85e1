// SPDX-License-Identifier: Apache-2.0
#include "batch/plan.hpp"

#include <algorithm>

namespace warpcipher {
namespace {

Group& group_of(std::vector<Group>& groups, const Message& message) {
  const Algorithm* algorithm = &message.algorithm();
  for (Group& group : groups) {
    if (group.algorithm == algorithm && group.direction == message.direction) return group;
  }
  groups.push_back({algorithm, message.direction, algorithm->parallel(message.direction), {}, {}, 0});
  return groups.back();
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
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    Group& group = group_of(plan.groups, messages[i]);
    group.messages.push_back(i);
    group.most_units = std::max<std::uint64_t>(group.most_units, messages[i].units());
  }
  order_groups(plan);
  for (Group& group : plan.groups) {
    if (group.parallel) {
      group.first_tile.reserve(group.messages.size() + 1);
      std::uint64_t tiles = 0;
      for (const std::uint32_t i : group.messages) {
        group.first_tile.push_back(tiles);
        tiles += (messages[i].units() + tile_units - 1) / tile_units;
      }
      group.first_tile.push_back(tiles);
    } else {
      std::stable_sort(group.messages.begin(), group.messages.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return messages[a].in_len > messages[b].in_len; });
    }
  }
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
