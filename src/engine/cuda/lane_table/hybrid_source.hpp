// SPDX-License-Identifier: Apache-2.0
// What hybrid kernels (hybrid.cuh) are given: sources (source.hpp) with their keys for logic too, and what other
// parameters they have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/aes_slices.hpp"
#include "engine/cuda/lane_table/kernels.hpp"
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
  static constexpr std::size_t shared_len = hybrid_shared_len;
};

// A source and its key for logic: of the rounds but the last, from number First on.
template <class Source, std::uint32_t First>
struct SlicedSource : Source {
  static constexpr std::uint32_t first_sliced = First;
  aes::SlicedKey sliced[most_round_keys - 1 - First];
};

inline constexpr std::uint32_t first_sliced_round = 3;  // of counters: those before are shared by a tile

template <class Source>
using CounterSource = SlicedSource<Source, first_sliced_round>;
template <class Source>
using TextSource = SlicedSource<Source, 1>;

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
  __device__ TileView find(std::uint32_t number) const;
};

}  // namespace warpcipher::cuda::lane_table
