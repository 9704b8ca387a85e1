// SPDX-License-Identifier: Apache-2.0
// XTS (IEEE 1619, section 5.3): the tweak of block j is T * alpha^j. The first tweak of a tile is computed from the
// message's first by a jump; lane l does so for the warp's tile after the next l: two products in GF(2^128) for 32
// tiles. Inside a tile each lane computes its tweaks by shifts, so no lane waits for another.
#pragma once

#include "cipher/gf128.hpp"
#include "engine/cuda/aes/modes.cuh"

namespace warpcipher::cuda::lane_table {

// Tweaks are blocks here: the coefficient of x^i is bit i % 32 of words[i / 32].

// The part of x^128 * leaving in words 0 and 1: leaving * (x^7 + x^2 + x + 1), without the 1. Computed by products,
// which leaves the logic pipe to the cipher.
__device__ __forceinline__ std::uint64_t fold_tweak(std::uint32_t leaving) {
  return std::uint64_t{leaving} * 2 ^ std::uint64_t{leaving} * 4 ^ std::uint64_t{leaving} * 128;
}

// t * alpha^32.
__device__ __forceinline__ Block next_row(const Block& t) {
  const std::uint64_t folded = fold_tweak(t.words[3]);
  return {{t.words[3] ^ static_cast<std::uint32_t>(folded), t.words[0] ^ static_cast<std::uint32_t>(folded >> 32),
           t.words[1], t.words[2]}};
}

// t * alpha^n, n below 32.
__device__ __forceinline__ Block shift_tweak(const Block& t, std::uint32_t n) {
  const std::uint32_t leaving = __funnelshift_l(t.words[3], 0, n);
  const std::uint64_t folded = fold_tweak(leaving);
  return {{t.words[0] << n ^ leaving ^ static_cast<std::uint32_t>(folded),
           __funnelshift_l(t.words[0], t.words[1], n) ^ static_cast<std::uint32_t>(folded >> 32),
           __funnelshift_l(t.words[1], t.words[2], n), __funnelshift_l(t.words[2], t.words[3], n)}};
}

// powers[k][i] = alpha^(tile_units * 64^k * i). A data unit has at most 2^20 blocks (section 5.1), 2^12 tiles.
struct TweakPowers {
  gf128::Tweak powers[2][64];
};

constexpr TweakPowers make_tweak_powers() {
  TweakPowers table{};
  gf128::Tweak step = gf128::jump_tweak({1, 0}, tile_units);
  for (auto& powers : table.powers) {
    gf128::Tweak power{1, 0};
    for (auto& entry : powers) {
      entry = power;
      power = gf128::detail::multiply_tweaks(power, step);
    }
    step = power;
  }
  return table;
}

static __device__ const TweakPowers tweak_powers = make_tweak_powers();

// t * alpha^(tile_units * tiles).
__device__ __forceinline__ Block jump_tiles(const Block& t, std::uint32_t tiles) {
  gf128::Tweak tweak{t.words[0] | std::uint64_t{t.words[1]} << 32, t.words[2] | std::uint64_t{t.words[3]} << 32};
#pragma unroll 1
  for (const auto& powers : tweak_powers.powers) {
    tweak = gf128::detail::multiply_tweaks(tweak, powers[tiles % 64]);
    tiles /= 64;
  }
  return {{static_cast<std::uint32_t>(tweak.low), static_cast<std::uint32_t>(tweak.low >> 32),
           static_cast<std::uint32_t>(tweak.high), static_cast<std::uint32_t>(tweak.high >> 32)}};
}

// The tweak of a tile's first block. Lanes may ask for different tiles.
__device__ __forceinline__ Block first_tweak(const TileList& list, std::uint64_t tile, std::uint32_t message) {
  const auto tiles = static_cast<std::uint32_t>(tile - list.first_tile[message]);
  const Block start = list.views[message].start;
  return tiles != 0 ? jump_tiles(start, tiles) : start;
}

template <bool Inverse>
struct XtsMode {
  static constexpr bool inverse = Inverse;
  static constexpr bool many_messages = true;
  static constexpr std::uint32_t unit_len = 16;
  using Parameters = NoParameters;

  // List: a MessageList. stride: from one tile of the warp to its next.
  template <class List>
  __device__ __forceinline__ void look_ahead(const List& list, std::uint32_t number, std::uint32_t stride) {
    if (turn == warp_len) {
      const std::uint64_t own = number + std::uint64_t{stride} * lane_index();
      if (own < list.tiles) {
        ahead = first_tweak(list, own, find_message_alone(list.first_tile, list.messages, list.tiles, own));
      }
      turn = 0;
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) tweak.words[w] = from_lane(ahead.words[w], turn);
    ++turn;
  }

  // The same in all lanes: the tweak of the next tile's first block.
  __device__ __forceinline__ void begin(const Block& first) { tweak = first; }

  // The bytes after the tile of a last block that is not whole. Every lane takes part.
  static __device__ __forceinline__ std::uint32_t tail_of(const TileView& tile) {
    const bool last = tile.first_unit + tile.units == tile.view.units;
    return from_lane(last ? static_cast<std::uint32_t>(tile.view.in_len % 16) : 0, 0);
  }

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const TileView& tile, const Parameters&) {
    const std::uint32_t tail = tail_of(tile);
    const std::uint32_t plain_units = tail != 0 ? tile.units - 1 : tile.units;
    Text text = tile.text;  // the whole blocks, without ciphertext stealing
    text.in_len = text.out_len = 16 * plain_units;
    text.pad = 0;
    for_each_step(text, plain_units, [&](auto step, std::uint32_t base) {
      Block blocks[step.blocks];
      Block at = shift_tweak(tweak, lane_index());
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {
        blocks[n] = text.load_if<step.whole>(base + lane_index() + warp_len * n) ^ at;
        at = next_row(at);
      }
      cipher(blocks);
      at = shift_tweak(tweak, lane_index());  // computed again, not kept: the cipher needs the registers
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {
        const std::uint32_t unit = base + lane_index() + warp_len * n;
        text.store_if<step.whole>(unit, blocks[n] ^ at);
        at = next_row(at);
      }
      if (step.whole || base + warp_len <= plain_units) {
#pragma unroll
        for (int n = 0; n < step.blocks; ++n) tweak = next_row(tweak);
      }
    });
    if (tail != 0 && lane_index() == 0) steal(cipher, text, plain_units, tail);
  }

 private:
  // Ciphertext stealing (section 5.3.2, and 5.4.2 for decryption, which uses the two tweaks in the other order): the
  // last whole block, number `unit` of the tile, and the `tail` bytes after it.
  template <class Cipher>
  __device__ __forceinline__ void steal(const Cipher& cipher, const Text& text, std::uint32_t unit,
                                        std::uint32_t tail) {
    Block first = shift_tweak(tweak, unit % warp_len);
    Block second = shift_tweak(first, 1);
    if constexpr (Inverse) {
      const Block swapped = first;
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

  Block tweak{};  // the tweak of the tile's next unit that is a multiple of 32, equal in all lanes
  Block ahead{};  // in lane l: the first tweak of the tile with turn l
  std::uint32_t turn = warp_len;
};

}  // namespace warpcipher::cuda::lane_table
