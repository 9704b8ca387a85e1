// SPDX-License-Identifier: Apache-2.0
// XTS (IEEE 1619, section 5.3): the tweak of block j is T * alpha^j. A tile's first tweak is a jump from the message's
// first, inside a tile tweaks follow by shifts, so no lane waits for another's.
#pragma once

#include "cipher/gf128.hpp"
#include "engine/cuda/lane_table/modes.cuh"

namespace warpcipher::cuda::lane_table {

using gf128::Tweak;
using gf128::detail::shift_tweak;

__device__ __forceinline__ Block operator^(const Block& block, const Tweak& t) {
  return block ^ Block {
    {
      static_cast<std::uint32_t>(t.low), static_cast<std::uint32_t>(t.low >> 32), static_cast<std::uint32_t>(t.high),
          static_cast<std::uint32_t>(t.high >> 32)
    }
  };
}

__device__ __forceinline__ Tweak to_tweak(const Block& block) {
  return {block.words[0] | std::uint64_t{block.words[1]} << 32, block.words[2] | std::uint64_t{block.words[3]} << 32};
}

// a * b with both the same in all lanes, shared out: lane l multiplies by bits 4 l to 4 l + 3 of b.
__device__ __forceinline__ Tweak multiply_in_warp(const Tweak& a, const Tweak& b) {
  const std::uint32_t lane = lane_index();
  const auto bits = static_cast<std::uint32_t>((lane < 16 ? b.low : b.high) >> (4 * (lane % 16)));
  Tweak sum{};
#pragma unroll
  for (int i = 3; i >= 0; --i) {
    sum = gf128::double_tweak(sum);
    const std::uint64_t mask = 0 - static_cast<std::uint64_t>(bits >> i & 1u);
    sum.low ^= a.low & mask;
    sum.high ^= a.high & mask;
  }
  sum = shift_tweak(sum, 4 * lane);
#pragma unroll
  for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
    sum.low ^= from_lane_xor(sum.low, distance);
    sum.high ^= from_lane_xor(sum.high, distance);
  }
  return sum;
}

struct XtsParameters {
  static constexpr std::uint32_t powers = 13;  // a data unit has at most 2^20 blocks (section 5.1), 2^12 tiles

  Tweak power[powers];  // power[i] = alpha^(tile_units * 2^i)
  Tweak stride;         // alpha^(tile_units * tiles from the end of one tile of a warp to its next)

  XtsParameters() {
    for (std::uint32_t i = 0; i < powers; ++i) power[i] = gf128::jump_tweak({1, 0}, std::uint64_t{tile_units} << i);
    stride = {1, 0};
  }

  // tiles: from one tile of a warp to its next, at least 1.
  void set_stride(std::uint64_t tiles) { stride = gf128::jump_tweak({1, 0}, tile_units * (tiles - 1)); }
};

template <bool Inverse>
struct XtsMode {
  static constexpr bool inverse = Inverse;
  static constexpr std::uint32_t unit_len = 16;
  using Parameters = XtsParameters;

  // The tweak of the tile's next unit that is a multiple of 32, the same in all lanes; at the end of a whole tile it is
  // kept, so that the warp's next tile of the same message is one product away.
  Tweak tweak{};
  std::uint32_t message = 0xffffffffu;

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const Tile& tile, const Parameters& parameters) {
    jump(tile, parameters);
    const bool last = tile.first_unit + tile.units == tile.view.units;
    const std::uint32_t tail = last ? static_cast<std::uint32_t>(tile.view.in_len % 16) : 0;
    const std::uint32_t plain_units = tail != 0 ? tile.units - 1 : tile.units;
    Text text = tile.text;  // of the blocks that steal nothing, which are whole
    text.in_len = text.out_len = 16 * plain_units;
    text.pad = 0;
    for_each_step(text, plain_units, [&](auto step, std::uint32_t base) {
      Block blocks[step.blocks];
      Tweak at = shift_tweak(tweak, lane_index());
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {
        blocks[n] = text.load_if<step.whole>(base + lane_index() + warp_len * n) ^ at;
        at = shift_tweak(at, warp_len);
      }
      cipher(blocks);
      at = shift_tweak(tweak, lane_index());  // again, rather than kept: registers are what the cipher is short of
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {
        const std::uint32_t unit = base + lane_index() + warp_len * n;
        text.store_if<step.whole>(unit, blocks[n] ^ at);
        at = shift_tweak(at, warp_len);
      }
      if (step.whole || base + warp_len <= plain_units) {
#pragma unroll
        for (int n = 0; n < step.blocks; ++n) tweak = shift_tweak(tweak, warp_len);
      }
    });
    if (tail != 0 && lane_index() == 0) steal(cipher, text, plain_units, tail);
  }

 private:
  __device__ __forceinline__ void jump(const Tile& tile, const Parameters& parameters) {
    if (message == tile.message) {  // then the tile before was a whole one
      tweak = multiply_in_warp(tweak, parameters.stride);
      return;
    }
    message = tile.message;
    tweak = to_tweak(tile.view.start);
    std::uint64_t tiles = tile.first_unit / tile_units;
#pragma unroll 1
    for (std::uint32_t i = 0; tiles != 0; ++i, tiles >>= 1) {
      if (tiles & 1) tweak = multiply_in_warp(tweak, parameters.power[i]);
    }
  }

  // Ciphertext stealing (section 5.3.2, and 5.4.2 for decryption, which takes the two tweaks the other way round): the
  // last whole block, number `unit` of the tile, and the `tail` bytes after it.
  template <class Cipher>
  __device__ __forceinline__ void steal(const Cipher& cipher, const Text& text, std::uint32_t unit,
                                        std::uint32_t tail) {
    Tweak first = shift_tweak(tweak, unit % warp_len);
    Tweak second = gf128::double_tweak(first);
    if constexpr (Inverse) {
      const Tweak swapped = first;
      first = second;
      second = swapped;
    }
    const std::uint8_t* tail_in = text.in + 16 * unit + 16;
    std::uint8_t* tail_out = text.out + 16 * unit + 16;
    Block block[1] = {load_bytes(text.in + 16 * unit, 16) ^ first};
    cipher(block);
    block[0] = block[0] ^ first;
#pragma unroll
    for (std::uint32_t i = 0; i < 16; ++i) {
      if (i < tail) {
        const std::uint32_t stolen = get_byte(block[0], i);
        set_byte(block[0], i, tail_in[i]);
        tail_out[i] = static_cast<std::uint8_t>(stolen);
      }
    }
    block[0] = block[0] ^ second;
    cipher(block);
    store_bytes(text.out + 16 * unit, 16, block[0] ^ second);
  }
};

}  // namespace warpcipher::cuda::lane_table
