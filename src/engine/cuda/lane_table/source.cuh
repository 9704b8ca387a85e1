// SPDX-License-Identifier: Apache-2.0
// What kernels do with a source (source.hpp), and one that they make themselves.
#pragma once

#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/lane_table/source.hpp"

namespace warpcipher::cuda::lane_table {

// How many units earlier than the message its tiles begin.
template <class Mode>
__device__ __forceinline__ std::uint32_t lead_of(const MessageView& view) {
  if constexpr (requires { Mode::lead(view); }) {
    return Mode::lead(view);
  } else {
    return 0;
  }
}

__device__ __forceinline__ ParameterKey SingleSource::key(const Tile&) const { return {schedule}; }

template <class Mode>
__device__ __forceinline__ Tile SingleSource::find(std::uint32_t tile) const {
  return make_tile(view, 0, tile, tile, tile_units, Mode::unit_len, lead_of<Mode>(view));
}

template <class Mode>
__device__ __forceinline__ Tile MessageList::find(std::uint32_t tile) const {
  const std::uint32_t message = find_message(first_tile, messages, tiles, tile);
  const MessageView& view = views[message];
  return make_tile(view, message, tile, tile - first_tile[message], tile_units, Mode::unit_len, lead_of<Mode>(view));
}

__device__ __forceinline__ ParameterKey OneKeySource::key_at(std::uint32_t) const { return {schedule}; }
__device__ __forceinline__ ParameterKey OneKeySource::key(const Tile&) const { return {schedule}; }

__device__ __forceinline__ Block BatchSource::Key::round(std::uint32_t r) const {
  const uint4 v = __ldg(words + r);
  return {{v.x, v.y, v.z, v.w}};
}

__device__ __forceinline__ BatchSource::Key BatchSource::key_at(std::uint32_t number) const {
  return {round_keys + std::size_t{most_rows} * number};
}

__device__ __forceinline__ BatchSource::Key BatchSource::key(const Tile& tile) const { return key_at(tile.view.key); }

// A BatchSource for keys of Rounds rounds. A round key that a whole warp reads takes 4 wavefronts, 44 a key of AES-128
// for every four blocks a lane; here a warp keeps the key of its message in registers. So there is room for half the
// warps, which are enough (H200: see docs/design/batches.md).
template <int Rounds>
struct HeldKeySource : BatchSource {
  static constexpr std::uint32_t block_threads = 512;

  struct Key {
    static constexpr bool in_registers = false;
    const uint4* words;
    Block rows[Rounds + 1];
    __device__ __forceinline__ const Block& round(std::uint32_t r) const { return rows[r]; }
    __device__ __forceinline__ Block round_in_loop(std::uint32_t r) const { return BatchSource::Key{words}.round(r); }
  };

  // Makes `key` that of the tile. Its words are nullptr at first.
  __device__ __forceinline__ void hold(Key& key, const Tile& tile) const {
    const BatchSource::Key source = BatchSource::key(tile);
    if (key.words == source.words) return;
    key.words = source.words;
#pragma unroll
    for (std::uint32_t r = 0; r <= Rounds; ++r) key.rows[r] = source.round(r);
  }
};

}  // namespace warpcipher::cuda::lane_table
