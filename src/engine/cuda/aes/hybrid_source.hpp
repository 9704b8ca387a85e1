// SPDX-License-Identifier: Apache-2.0
// The inputs of hybrid kernels (hybrid.cuh): sources (source.hpp) that also have keys for logic, and other parameters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/aes_slices.hpp"
#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/aes/source.hpp"
#include "engine/cuda/aes/table_layout.hpp"

namespace warpcipher::cuda::lane_table {

struct HybridPolicy {
  static constexpr std::uint32_t warps = block_threads / 32;
  static constexpr std::uint32_t sliced_warps = 8;  // H200, a prototype: 4 gave 1006, 8 1035 GB/s
  static constexpr std::uint32_t lane_warps = warps - sliced_warps;
  static constexpr std::uint32_t run = 4;              // tiles of a deal, except for the last
  static constexpr std::uint32_t singles = 3 * warps;  // the last tiles, dealt one by one
  static constexpr std::uint32_t many = 1024;          // tiles of a block: then no warp waits long for a last deal
  // A sliced warp takes at most one of these: it needs twice as long for a tile.
  static constexpr std::uint32_t reserved = 2 * lane_warps;
  static constexpr std::size_t shared_len = hybrid_shared_len;
};

// A source and its key for logic: of all rounds but the last, from number First on.
template <class Source, std::uint32_t First>
struct SlicedSource : Source {
  static constexpr std::uint32_t first_sliced = First;
  aes::SlicedKey sliced[most_round_keys - 1 - First];
};

inline constexpr std::uint32_t first_sliced_round = 3;  // of counters: a tile shares the rounds before

template <class Source>
using CounterSource = SlicedSource<Source, first_sliced_round>;
template <class Source>
using TextSource = SlicedSource<Source, 1>;

// Data units of XTS that share a key, cut into tiles that are data units of their own: each has its view, whose `start`
// is its first tweak. Another kernel makes them beforehand (cut_units): in the hybrid kernel this code would exceed the
// instruction caches.
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
