// SPDX-License-Identifier: Apache-2.0
// The parallel modes: a warp's work on one tile. Each mode is a struct with
//
//   inverse     whether the cipher runs backwards
//   unit_len    bytes of a unit
//   Parameters  passed by the host in addition to messages and keys
//   unrolled    false: not worth a kernel for each key length
//   lead()      where tiles need not begin with the message: how many units earlier they do
//   tile()      called by all lanes of a warp; may keep values between the tiles of a warp
//
// Lane l takes units l, l + 32, ... so that a warp's loads are contiguous. When out == in, a warp writes a group of
// units only after all its lanes have read what they need of it. The block before the tile comes from the saved
// ciphertext, because another warp may have overwritten it.
#pragma once

#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/aes/source.cuh"

namespace warpcipher::cuda::lane_table {

template <int N, bool IsWhole>
struct Step {
  static constexpr int blocks = N;
  static constexpr bool whole = IsWhole;
};

// Calls step(Step, unit) for units [0, units) of a tile, 128 at a time while they are whole and aligned, then 32 at a
// time. The lane's block n of a step is unit + 32 n.
template <class Function>
__device__ __forceinline__ void for_each_step(const Text& text, std::uint32_t units, Function&& step) {
  constexpr std::uint32_t group = blocks_in_flight * warp_len;
  std::uint32_t base = 0;
  if (text.aligned) {
    const std::uint32_t whole = text.in_len / 16 < units ? text.in_len / 16 : units;
#pragma unroll 1
    for (; base + group <= whole; base += group) step(Step<blocks_in_flight, true>{}, base);
  }
#pragma unroll 1
  for (; base < units; base += warp_len) step(Step<1, false>{}, base);
}

template <bool Inverse>
struct EcbMode {
  static constexpr bool inverse = Inverse;
  static constexpr std::uint32_t unit_len = 16;
  using Parameters = NoParameters;

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const TileView& tile, const Parameters&) {
    const Text text = tile.text;
    for_each_step(text, tile.units, [&](auto step, std::uint32_t base) {
      Block blocks[step.blocks];
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) blocks[n] = text.load_if<step.whole>(base + lane_index() + warp_len * n);
      cipher(blocks);
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) text.store_if<step.whole>(base + lane_index() + warp_len * n, blocks[n]);
    });
  }
};

// The ciphertext block before a tile, or the IV.
__device__ __forceinline__ Block block_before(const TileView& tile, const ChainParameters& parameters) {
  if (parameters.saved_ciphertext != nullptr) return parameters.saved_ciphertext[tile.number];
  if (tile.first_unit == 0) return tile.view.start;
  return load_bytes(tile.text.in - 16, 16);
}

// A step's blocks of ciphertext. Each lane keeps its own blocks. The block before is in the lane below, or in lane 31
// of the row before. It comes by shuffles, which are cheaper than reading it again at addresses that are not aligned
// with cache lines.
template <class S>
struct Ciphertext {
  Block own[S::blocks];

  __device__ __forceinline__ Ciphertext(const Text& text, std::uint32_t base) {
#pragma unroll
    for (int n = 0; n < S::blocks; ++n) own[n] = text.load_if<S::whole>(base + lane_index() + warp_len * n);
  }

  // before: the block before the step; afterwards the last block of the step. Only lane 0 uses it.
  __device__ __forceinline__ void get_previous(Block (&previous)[S::blocks], Block& before) const {
    const bool first = lane_index() == 0;
#pragma unroll
    for (int n = 0; n < S::blocks; ++n) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const std::uint32_t below = from_lane(own[n].words[w], (lane_index() + warp_len - 1) % warp_len);
        previous[n].words[w] = first ? before.words[w] : below;
        before.words[w] = below;
      }
    }
  }
};

struct CbcDecryption {
  static constexpr bool inverse = true;
  static constexpr std::uint32_t unit_len = 16;
  using Parameters = ChainParameters;

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const TileView& tile, const Parameters& parameters) {
    const Text text = tile.text;
    Block before = block_before(tile, parameters);
    for_each_step(text, tile.units, [&](auto step, std::uint32_t base) {
      const Ciphertext<decltype(step)> ciphertext(text, base);
      Block blocks[step.blocks];
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) blocks[n] = ciphertext.own[n];
      cipher(blocks);
      Block previous[step.blocks];
      ciphertext.get_previous(previous, before);
      __syncwarp();
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {
        text.store_if<step.whole>(base + lane_index() + warp_len * n, blocks[n] ^ previous[n]);
      }
    });
  }
};

struct CfbDecryption {
  static constexpr bool inverse = false;
  static constexpr std::uint32_t unit_len = 16;
  using Parameters = ChainParameters;

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const TileView& tile, const Parameters& parameters) {
    const Text text = tile.text;
    Block before = block_before(tile, parameters);
    for_each_step(text, tile.units, [&](auto step, std::uint32_t base) {
      const Ciphertext<decltype(step)> ciphertext(text, base);
      Block blocks[step.blocks];
      ciphertext.get_previous(blocks, before);
      cipher(blocks);
      __syncwarp();
#pragma unroll
      for (int n = 0; n < step.blocks; ++n) {
        text.store_if<step.whole>(base + lane_index() + warp_len * n, blocks[n] ^ ciphertext.own[n]);
      }
    });
  }
};

// A unit is a byte: lane l takes bytes 8 l to 8 l + 7 of the tile, and its shift registers are windows of the 24 bytes
// that end there:
//
//   | lane l - 2: 8 bytes | lane l - 1: 8 bytes | own 8 bytes |
//     \_______ register of own byte 0 ________/
//
// The whole tile is in registers before its first byte is written.
struct Cfb8Decryption {
  static constexpr bool inverse = false;
  static constexpr bool unrolled = false;  // a mode for old links, which has a sixteenth of the speed anyway
  static constexpr std::uint32_t unit_len = 1;
  using Parameters = ChainParameters;

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const TileView& tile, const Parameters& parameters) {
    const Text text = tile.text;
    const std::uint32_t lane = lane_index();
    const Block before = block_before(tile, parameters);
    std::uint32_t window[6];
    load_own(text, window[4], window[5]);
    window[2] = from_lane_below(window[4], 1);
    window[3] = from_lane_below(window[5], 1);
    window[0] = from_lane_below(window[4], 2);
    window[1] = from_lane_below(window[5], 2);
    if (lane < 2) {
      window[0] = before.words[2];
      window[1] = before.words[3];
    }
    if (lane == 0) {
      window[0] = before.words[0];
      window[1] = before.words[1];
      window[2] = before.words[2];
      window[3] = before.words[3];
    }
#pragma unroll 1
    for (std::uint32_t half = 0; half < 2; ++half) {
      Block blocks[4];
#pragma unroll
      for (std::uint32_t n = 0; n < 4; ++n) {
#pragma unroll
        for (std::uint32_t w = 0; w < 4; ++w) {
          blocks[n].words[w] = __funnelshift_r(window[w], window[w + 1], 8 * n);
        }
      }
      cipher(blocks);
#pragma unroll
      for (std::uint32_t n = 0; n < 4; ++n) {
        const std::uint32_t byte = 8 * lane + 4 * half + n;
        const std::uint32_t ciphertext = window[4] >> (8 * n);
        if (byte < tile.units) text.out[byte] = static_cast<std::uint8_t>(ciphertext ^ blocks[n].words[0]);
      }
#pragma unroll
      for (std::uint32_t w = 0; w < 5; ++w) window[w] = window[w + 1];
    }
    __syncwarp();
  }

 private:
  __device__ __forceinline__ static void load_own(const Text& text, std::uint32_t& low, std::uint32_t& high) {
    const std::uint32_t offset = 8 * lane_index();
    const Block own = load_bytes(text.in + offset, text.in_len <= offset      ? 0
                                                   : text.in_len < offset + 8 ? text.in_len - offset
                                                                              : 8);
    low = own.words[0];
    high = own.words[1];
  }
};

}  // namespace warpcipher::cuda::lane_table
