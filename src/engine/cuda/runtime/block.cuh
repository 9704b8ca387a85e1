// SPDX-License-Identifier: Apache-2.0
// A 128-bit block in registers, and the text of a tile: loads and stores blocks at any alignment and of any length.
#pragma once

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda {

__device__ __forceinline__ std::uint32_t get_byte(const Block& block, std::uint32_t i) {
  return block.words[i / 4] >> (8 * (i % 4)) & 0xffu;
}

__device__ __forceinline__ void set_byte(Block& block, std::uint32_t i, std::uint32_t value) {
  const std::uint32_t shift = 8 * (i % 4);
  block.words[i / 4] = (block.words[i / 4] & ~(0xffu << shift)) | value << shift;
}

__device__ __forceinline__ Block load_aligned(const std::uint8_t* p) {
  const uint4 v = *reinterpret_cast<const uint4*>(p);
  return {{v.x, v.y, v.z, v.w}};
}

__device__ __forceinline__ void store_aligned(std::uint8_t* p, const Block& block) {
  __stcs(reinterpret_cast<uint4*>(p), make_uint4(block.words[0], block.words[1], block.words[2], block.words[3]));
}

// The first `len` bytes (all 16 when len is more) from any address; the rest become `fill`.
__device__ __forceinline__ Block load_bytes(const std::uint8_t* p, std::uint32_t len, std::uint32_t fill = 0) {
  Block block{};
#pragma unroll
  for (std::uint32_t i = 0; i < 16; ++i) set_byte(block, i, i < len ? p[i] : fill);
  return block;
}

__device__ __forceinline__ void store_bytes(std::uint8_t* p, std::uint32_t len, const Block& block) {
#pragma unroll
  for (std::uint32_t i = 0; i < 16; ++i) {
    if (i < len) p[i] = static_cast<std::uint8_t>(get_byte(block, i));
  }
}

// The part of a message's text that one tile covers. Lengths count from the start of the tile, and are limited to 32
// bits.
struct Text {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint32_t in_len;
  std::uint32_t out_len;  // more than in_len if padding is added
  std::uint32_t pad;      // the byte that follows the text: PKCS#7's, or 0
  bool aligned;           // in and out are multiples of 16

  // Block number `unit` of the tile. It may be short, or past the end.
  __device__ __forceinline__ Block load(std::uint32_t unit) const {
    const std::uint32_t offset = 16 * unit;
    if (aligned && offset + 16 <= in_len) return load_aligned(in + offset);
    return load_bytes(in + offset, in_len > offset ? in_len - offset : 0, pad);
  }

  __device__ __forceinline__ void store(std::uint32_t unit, const Block& block) const {
    const std::uint32_t offset = 16 * unit;
    if (aligned && offset + 16 <= out_len) {
      store_aligned(out + offset, block);
    } else {
      store_bytes(out + offset, out_len > offset ? out_len - offset : 0, block);
    }
  }

  // The same for a block that is known to be whole and aligned.
  template <bool Whole>
  __device__ __forceinline__ Block load_if(std::uint32_t unit) const {
    if constexpr (Whole) {
      return load_aligned(in + 16 * unit);
    } else {
      return load(unit);
    }
  }

  template <bool Whole>
  __device__ __forceinline__ void store_if(std::uint32_t unit, const Block& block) const {
    if constexpr (Whole) {
      store_aligned(out + 16 * unit, block);
    } else {
      store(unit, block);
    }
  }
};

}  // namespace warpcipher::cuda
