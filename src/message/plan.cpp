// SPDX-License-Identifier: Apache-2.0
#include "message/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace warpcipher {
namespace {

// Numbers the kinds of messages in the order in which they first occur; a kind becomes a group. Kinds may alternate, so
// the code for a message has no branch that depends on its kind: mispredicted every other time, such a branch took half
// as long as the rest together.
class Kinds {
 public:
  std::uint8_t number(const Message& message) {
    const Algorithm* const algorithm = &message.algorithm();
    Entry& entry = table_[place_of(algorithm, message.direction)];
    if (entry.algorithm != algorithm || entry.direction != message.direction) {
      entry = {algorithm, message.direction, find(algorithm, message.direction)};
    }
    return entry.number;
  }

  // Without their messages.
  std::vector<Group>& groups() { return groups_; }

 private:
  static constexpr int table_log = 7;  // there are fewer than 128 kinds; a collision only costs time

  struct Entry {
    const Algorithm* algorithm = nullptr;
    Direction direction{};
    std::uint8_t number = 0;
  };

  static std::size_t place_of(const Algorithm* algorithm, Direction direction) {
    constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15u;  // spreads addresses (Knuth, volume 3, section 6.4)
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(algorithm) + static_cast<std::uint64_t>(direction);
    return address * golden_ratio >> (64 - table_log);
  }

  std::uint8_t find(const Algorithm* algorithm, Direction direction) {
    const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
      return group.algorithm == algorithm && group.direction == direction;
    });
    const auto number = static_cast<std::uint8_t>(found - groups_.begin());
    if (found == groups_.end()) groups_.push_back({algorithm, direction, algorithm->parallel(direction), {}, {}, 0});
    return number;
  }

  std::array<Entry, std::size_t{1} << table_log> table_{};
  std::vector<Group> groups_;
};

// The groups, each with its messages in the given order.
std::vector<Group> group_messages(std::span<const Message> messages) {
  Kinds kinds;
  std::vector<std::uint8_t> number_of(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) number_of[i] = kinds.number(messages[i]);
  std::vector<Group>& groups = kinds.groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto number = static_cast<std::uint8_t>(g);
    std::vector<std::uint32_t>& own = groups[g].messages;
    own.resize(static_cast<std::size_t>(std::count(number_of.begin(), number_of.end(), number)));
    std::size_t found = 0;
    for (std::uint32_t i = 0; found < own.size(); ++i) {
      own[found] = i;
      found += number_of[i] == number;
    }
  }
  return std::move(groups);
}

// A radix sort by the bytes of the lengths; bytes that are the same in all lengths are skipped. A sort by comparisons
// took as long as the rest of the plan, and a GPU waits for the plan.
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

// 0: serial. 2: the host waits for the verdicts of tags, so this group comes last and delays no other.
int rank_of(const Group& group, std::span<const Message> messages) {
  if (!group.parallel) return 0;
  return messages[group.messages[0]].is_authenticated_decryption() ? 2 : 1;
}

void order_groups(Plan& plan) {
  std::stable_sort(plan.groups.begin(), plan.groups.end(), [&](const Group& a, const Group& b) {
    const int x = rank_of(a, plan.messages), y = rank_of(b, plan.messages);
    return x != y ? x < y : x == 0 && a.most_units > b.most_units;
  });
  while (plan.concurrent + 1 < plan.groups.size() && !plan.groups[plan.concurrent].parallel) ++plan.concurrent;
}

}  // namespace

Plan make_plan(std::span<const Message> messages, std::uint32_t tile_units) {
  Plan plan{messages, tile_units, group_messages(messages), 0};
  const int tile_log = std::countr_zero(tile_units);
  for (Group& group : plan.groups) {
    if (!group.parallel) {
      sort_longest_first(group.messages, messages);
      group.most_units = messages[group.messages[0]].units();
      continue;
    }
    group.first_tile.resize(group.messages.size() + 1);
    std::uint64_t tiles = 0;
    for (std::size_t k = 0; k < group.messages.size(); ++k) {
      const std::uint64_t units = messages[group.messages[k]].units();
      group.most_units = std::max(group.most_units, units);
      tiles += (units + tile_units - 1) >> tile_log;
      group.first_tile[k + 1] = tiles;
    }
  }
  order_groups(plan);
  return plan;
}

}  // namespace warpcipher
