// SPDX-License-Identifier: Apache-2.0
// Where the parallel kernel finds its tiles and keys: in its parameters (one message), in device memory (a batch), or
// keys here and tiles there (a batch with one key, for the modes whose messages are short: XTS).
//
// A source's Key has `Block round(r)`, and in_registers: whether what it gives lies in registers rather than in
// operands of the logic, so that a mode had better be sparing with its own. Where r must be known at compile time there
// is round_in_loop(r) beside it.
#pragma once

#include "engine/cuda/lane_table/run.hpp"
#include "engine/cuda/message_view.cuh"

namespace warpcipher::cuda::lane_table {

inline constexpr std::uint32_t most_schedule_words = 4 * most_rows;

// Tiles of a launch are counted in 32 bits, with room for the stride of a warp: 1 TiB of CFB8, 16 TiB of the others.
inline constexpr std::uint64_t most_tiles = 0xffff0000u;

// How many units earlier than the message its tiles begin.
template <class Mode>
__device__ __forceinline__ std::uint32_t lead_of(const MessageView& view) {
  if constexpr (requires { Mode::lead(view); }) {
    return Mode::lead(view);
  } else {
    return 0;
  }
}

// A key in the constant bank.
struct ParameterKey {
  static constexpr bool in_registers = false;
  const std::uint32_t* schedule;
  __device__ __forceinline__ Block round(std::uint32_t r) const {
    const std::uint32_t* words = schedule + 4 * r;
    return {{words[0], words[1], words[2], words[3]}};
  }
};

// One message: everything is a kernel parameter.
struct SingleSource {
  using Key = ParameterKey;

  MessageView view;
  std::uint64_t tiles;
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  __device__ __forceinline__ Key key(const Tile&) const { return {schedule}; }
  template <class Mode>
  __device__ __forceinline__ Tile find(std::uint32_t tile) const {
    return make_tile(view, 0, tile, tile, tile_units, Mode::unit_len, lead_of<Mode>(view));
  }
};

// Many messages.
struct MessageList : TileList {
  template <class Mode>
  __device__ __forceinline__ Tile find(std::uint32_t tile) const {
    const std::uint32_t message = find_message(first_tile, messages, tiles, tile);
    const MessageView& view = views[message];
    return make_tile(view, message, tile, tile - first_tile[message], tile_units, Mode::unit_len, lead_of<Mode>(view));
  }
};

// Many messages of one key.
struct OneKeySource : MessageList {
  using Key = ParameterKey;

  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  __device__ __forceinline__ Key key_at(std::uint32_t) const { return {schedule}; }
  __device__ __forceinline__ Key key(const Tile&) const { return {schedule}; }
};

// Many messages, each with its key.
struct BatchSource : MessageList {
  std::uint32_t rounds;
  const uint4* round_keys;

  struct Key {
    static constexpr bool in_registers = true;
    const uint4* words;
    __device__ __forceinline__ Block round(std::uint32_t r) const {
      const uint4 v = __ldg(words + r);
      return {{v.x, v.y, v.z, v.w}};
    }
  };

  __device__ __forceinline__ Key key_at(std::uint32_t number) const {
    return {round_keys + std::size_t{most_rows} * number};
  }
  __device__ __forceinline__ Key key(const Tile& tile) const { return key_at(tile.view.key); }
};

// The same for keys of Rounds rounds. A round key that a whole warp reads takes 4 wavefronts, 44 a key of AES-128 for
// every four blocks a lane; here a warp keeps the key of its message in registers. So there is room for half the warps,
// which are enough (H200: see docs/performance.md).
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
