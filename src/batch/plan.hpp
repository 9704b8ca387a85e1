// SPDX-License-Identifier: Apache-2.0
// The plan: what a batch becomes before it runs. Plain data, made by a pure function, the same for every engine.
//
// Messages of one algorithm and direction form a group. A group whose mode is parallel is cut into tiles of up to
// `tile_units` units of one message:
//
//   messages      [  m0 (5 tiles) | m1 (0) | m2 (2 tiles) ]
//   first_tile    [  0              5        5              7 ]      prefix sums, one more than messages
//
// so that any worker finds the message of tile t by binary search, and every unit of every message lies in exactly one
// tile. Messages of a serial group are sorted by length, longest first: lanes of a warp then end together, and cores
// take the long ones first.
//
// However many messages there are, a serial group takes as long as its longest. So serial groups stand first, that with
// the longest message at their head, and what stands behind them can fill the lanes that they leave idle:
//
//   groups        [ serial, 2048 blocks | serial, 90 blocks | parallel | parallel | parallel, text after a verdict ]
//   beside          2: these begin at once, each for itself   the others follow each other
//
// The order that messages were given in changes none of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "batch/message.hpp"

namespace warpcipher {

struct Group {
  const Algorithm* algorithm;
  Direction direction;
  bool parallel;
  std::vector<std::uint32_t> messages;    // indices into Plan::messages
  std::vector<std::uint64_t> first_tile;  // parallel groups alone: messages.size() + 1 prefix sums

  std::uint64_t most_units = 0;  // of a message: in a serial group, what one lane does in a row

  std::uint64_t tiles() const { return parallel ? first_tile.back() : messages.size(); }
};

struct Plan {
  std::span<const Message> messages;
  std::uint32_t tile_units;
  std::vector<Group> groups;
  std::size_t beside = 0;  // of the groups, so many run beside those behind them: serial ones, but never the last
};

// A tile: units [first_unit, first_unit + units) of messages[message].
struct Tile {
  std::uint32_t message;
  std::uint64_t first_unit;
  std::uint64_t units;
};

// Messages must have passed check_messages. tile_units is a power of two.
Plan make_plan(std::span<const Message> messages, std::uint32_t tile_units);

// Tile number `tile` (< group.tiles()) of a parallel group.
Tile find_tile(const Plan& plan, const Group& group, std::uint64_t tile);

}  // namespace warpcipher
