// SPDX-License-Identifier: Apache-2.0
// The text of a lane: 64 bytes, as four words of 16.
#pragma once

#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/runtime/block.cuh"

namespace warpcipher::cuda::chacha {

struct Text64 {
  uint4 quarters[4];
};

__device__ __forceinline__ uint4 to_vector(const Block& b) {
  return make_uint4(b.words[0], b.words[1], b.words[2], b.words[3]);
}
__device__ __forceinline__ Block to_block(const uint4& v) { return {{v.x, v.y, v.z, v.w}}; }

// The first `len` bytes, up to 64; the rest are zeros. aligned: p is a multiple of 16.
__device__ __forceinline__ Text64 load_text(const std::uint8_t* p, std::uint32_t len, bool aligned) {
  Text64 text;
  if (aligned && len >= block_len) {
#pragma unroll
    for (int i = 0; i < 4; ++i) text.quarters[i] = reinterpret_cast<const uint4*>(p)[i];
  } else {
#pragma unroll 1
    for (std::uint32_t i = 0; i < 4; ++i) {
      const uint4 quarter = to_vector(load_bytes(p + 16 * i, len > 16 * i ? len - 16 * i : 0));
      if (i == 0) text.quarters[0] = quarter;
      if (i == 1) text.quarters[1] = quarter;
      if (i == 2) text.quarters[2] = quarter;
      if (i == 3) text.quarters[3] = quarter;
    }
  }
  return text;
}

__device__ __forceinline__ void store_text(std::uint8_t* p, std::uint32_t len, bool aligned, const Text64& text) {
  if (aligned && len >= block_len) {
#pragma unroll
    for (int i = 0; i < 4; ++i) reinterpret_cast<uint4*>(p)[i] = text.quarters[i];
  } else {
#pragma unroll 1
    for (std::uint32_t i = 0; i < 4; ++i) {
      const uint4 quarter = i == 0   ? text.quarters[0]
                            : i == 1 ? text.quarters[1]
                            : i == 2 ? text.quarters[2]
                                     : text.quarters[3];
      store_bytes(p + 16 * i, len > 16 * i ? len - 16 * i : 0, to_block(quarter));
    }
  }
}

__device__ __forceinline__ void add_key_stream(Text64& text, const std::uint32_t (&x)[16]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    text.quarters[i].x ^= x[4 * i];
    text.quarters[i].y ^= x[4 * i + 1];
    text.quarters[i].z ^= x[4 * i + 2];
    text.quarters[i].w ^= x[4 * i + 3];
  }
}

__device__ __forceinline__ bool are_aligned(const void* a, const void* b) {
  return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) & 15) == 0;
}

}  // namespace warpcipher::cuda::chacha
