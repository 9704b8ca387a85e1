// SPDX-License-Identifier: Apache-2.0
// What hybrid kernels (hybrid.cuh) are given: sources (source.hpp) with their keys for logic too, and what other
// parameters they have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/aes_slices.hpp"
#include "engine/cuda/lane_table/source.hpp"
#include "engine/cuda/lane_table/table_layout.hpp"

namespace warpcipher::cuda::lane_table {

struct HybridPolicy {
  static constexpr std::uint32_t warps = block_threads / 32;
  static constexpr std::uint32_t sliced_warps = 8;  // H200, a prototype: 4 gave 1006, 8 1035 GB/s
  static constexpr std::uint32_t lane_warps = warps - sliced_warps;
  static constexpr std::uint32_t run = 4;              // tiles that a warp takes at once, but for the last
  static constexpr std::uint32_t singles = 3 * warps;  // the last, dealt one by one
  static constexpr std::uint32_t many = 1024;  // tiles of a block: a long deal is then not what the others wait for
  // Of these a sliced warp, which needs twice as long for a tile, takes one at most.
  static constexpr std::uint32_t reserved = 2 * lane_warps;
  static constexpr std::size_t shared_len = Tables128ByProduct::shared_len + sizeof(uint4);  // the count behind them
};

// A source and its key for logic: of the rounds but the last, from number First on.
template <class Source, std::uint32_t First>
struct SlicedSource : Source {
  static constexpr std::uint32_t first_sliced = First;
  aes::SlicedKey sliced[most_rows - 1 - First];
};

inline constexpr std::uint32_t first_sliced_round = 3;  // of counters: those before are shared by a tile

template <class Source>
using CounterSource = SlicedSource<Source, first_sliced_round>;
template <class Source>
using TextSource = SlicedSource<Source, 1>;

// How messages share a tile (hybrid_packed.cuh draws it).
struct Places {
  static constexpr std::uint32_t most_messages = 16;  // two lanes each

  std::uint32_t of_message;  // U
  std::uint32_t messages;    // M
  std::uint32_t reciprocal;  // of U, by which the message of a place is a product

  explicit WARPCIPHER_HD constexpr Places(std::uint32_t most_units)
      : of_message(most_units),
        messages(tile_units / most_units < most_messages ? tile_units / most_units : most_messages),
        reciprocal((0x10000u + most_units - 1) / most_units) {}

  WARPCIPHER_HD constexpr std::uint32_t tiles(std::uint32_t of) const { return (of + messages - 1) / messages; }
  WARPCIPHER_HD constexpr std::uint32_t message_at(std::uint32_t place) const { return place * reciprocal >> 16; }
};

// Data units of XTS that share a key, cut into tiles that are data units of their own: each has its view, whose `start`
// is its first tweak. A kernel before makes them (cut_units): in the hybrid kernel they would be code for which the
// instruction caches have no room.
struct UnitSource {
  const MessageView* views;
  std::uint64_t tiles;
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  // Every lane takes part.
  template <class Mode>
  __device__ Tile find(std::uint32_t number) const;
};

inline constexpr std::uint64_t row_len = 16 * 32;  // bytes: a block for each lane of a warp

}  // namespace warpcipher::cuda::lane_table
