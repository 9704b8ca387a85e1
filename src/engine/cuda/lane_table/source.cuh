// SPDX-License-Identifier: Apache-2.0
// What kernels do with a source (source.hpp).
#pragma once

#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/lane_table/source.hpp"

namespace warpcipher::cuda::lane_table {

// How many units before the message its tiles begin.
template <class Mode>
__device__ __forceinline__ std::uint32_t lead_of(const MessageView& view) {
  if constexpr (requires { Mode::lead(view); }) {
    return Mode::lead(view);
  } else {
    return 0;
  }
}

__device__ __forceinline__ ParameterKey SingleSource::key(const TileView&) const { return {schedule}; }

template <class Mode>
__device__ __forceinline__ TileView SingleSource::find(std::uint32_t tile) const {
  return make_tile(view, 0, tile, tile, tile_units, Mode::unit_len, lead_of<Mode>(view));
}

template <class Mode>
__device__ __forceinline__ TileView MessageList::find(std::uint32_t tile) const {
  const std::uint32_t message = find_message(first_tile, messages, tiles, tile);
  const MessageView& view = views[message];
  return make_tile(view, message, tile, tile - first_tile[message], tile_units, Mode::unit_len, lead_of<Mode>(view));
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

}  // namespace warpcipher::cuda::lane_table
