// SPDX-License-Identifier: Apache-2.0
// The plan: a batch, ready to run. Plain data, made by a pure function, the same for every engine.
//
// Messages of one algorithm and direction form a group. A group whose mode is parallel is cut into tiles of up to
// `tile_units` units of one message:
//
//   messages      [  m0 (5 tiles) | m1 (0) | m2 (2 tiles) ]
//   first_tile    [  0              5        5              7 ]      prefix sums, one more than messages
//
// So any worker finds the message of tile t by binary search, and every unit of every message lies in exactly one tile.
// Messages of a serial group are sorted by length, longest first: the lanes of a warp then end together, and cores take
// the long ones first.
//
// A serial group takes as long as its longest message, however many it has. So serial groups come first, the one with
// the longest message at the head. Groups that follow can use the lanes that they leave idle:
//
//   groups        [ serial, 2048 blocks | serial, 90 blocks | parallel | parallel | parallel, text after a verdict ]
//   concurrent      2: these begin at once, each for itself   the others follow each other
//
// The order in which messages were given changes none of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "message/message.hpp"

namespace warpcipher {

struct Group {
  const Algorithm* algorithm;
  Direction direction;
  bool parallel;
  std::vector<std::uint32_t> messages;    // indices into Plan::messages
  std::vector<std::uint64_t> first_tile;  // only parallel groups: messages.size() + 1 prefix sums

  std::uint64_t most_units = 0;  // of a message: in a serial group, one lane computes that many, one after the other

  std::uint64_t tiles() const { return parallel ? first_tile.back() : messages.size(); }
};

struct Plan {
  std::span<const Message> messages;
  std::uint32_t tile_units;
  std::vector<Group> groups;
  std::size_t concurrent = 0;  // this many serial groups run at the same time as those that follow
};

// Messages must have passed check_messages. tile_units is a power of two.
Plan make_plan(std::span<const Message> messages, std::uint32_t tile_units);

}  // namespace warpcipher
