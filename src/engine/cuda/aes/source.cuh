// SPDX-License-Identifier: Apache-2.0
// Kernels' use of a source (source.hpp).
#pragma once

#include "engine/cuda/aes/source.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

// Whether messages in the mode may begin inside a tile, and have ends that tiles may lack.
template <class Mode>
inline constexpr bool has_lead = requires(const MessageView& view) { Mode::lead(view); };

__device__ __forceinline__ ParameterKey SingleSource::key(const TileView&) const { return {schedule}; }

template <class Mode>
__device__ __forceinline__ TileView SingleSource::find(std::uint32_t tile) const {
  if constexpr (has_lead<Mode>) {
    return make_tile(view, 0, tile, tile, tile_units, Mode::unit_len, view.units, Mode::lead(view));
  } else {
    return make_tile(view, 0, tile, tile, tile_units, Mode::unit_len);
  }
}

template <class Mode>
__device__ __forceinline__ TileView MessageList::find(std::uint32_t tile) const {
  const std::uint32_t message = find_message(first_tile, messages, tiles, tile);
  const MessageView& view = views[message];
  const std::uint64_t number = tile - first_tile[message];
  if constexpr (has_lead<Mode>) {
    const std::uint32_t lead = Mode::lead(view);
    return make_tile(view, message, tile, number, tile_units, Mode::unit_len,
                     units_of_tiles(view.in_len, lead, lacks_ends != 0), lead);
  } else {
    return make_tile(view, message, tile, number, tile_units, Mode::unit_len);
  }
}

__device__ __forceinline__ ParameterKey OneKeySource::key_at(std::uint32_t) const { return {schedule}; }
__device__ __forceinline__ ParameterKey OneKeySource::key(const TileView&) const { return {schedule}; }

__device__ __forceinline__ Block BatchSource::Key::round(std::uint32_t r) const {
  const uint4 v = __ldg(words + r);
  return {{v.x, v.y, v.z, v.w}};
}

__device__ __forceinline__ BatchSource::Key BatchSource::key_at(std::uint32_t number) const {
  return {round_keys + std::size_t{most_round_keys} * number};
}

__device__ __forceinline__ BatchSource::Key BatchSource::key(const TileView& tile) const {
  return key_at(tile.view.key);
}

// The launch configuration of kernels that fill lane tables.

// A block has as many warps as tiles, up to 32: more would only wait until the tables are filled.
inline LaunchConfiguration parallel_configuration(const Device& device, std::uint64_t tiles, std::size_t shared_len) {
  const std::uint64_t blocks = tiles < device.multiprocessors ? tiles : device.multiprocessors;
  std::uint64_t warps = (tiles + blocks - 1) / blocks;
  if (warps > block_threads / warp_len) warps = block_threads / warp_len;
  if (warps < 8) warps = 8;  // to fill the tables faster
  return {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(warps * warp_len), shared_len};
}

}  // namespace warpcipher::cuda::lane_table
