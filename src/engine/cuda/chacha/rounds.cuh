// SPDX-License-Identifier: Apache-2.0
// A block of ChaCha20's key stream in a lane.
//
// The pipe of logic bounds it: XOR and rotations. Additions go to the multiply pipe, where the compiler makes them
// products by one.
#pragma once

#include "cipher/chacha.hpp"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda::chacha {

using ciphers::double_round, ciphers::first_row, ciphers::quarter_round, ciphers::round_of_columns,
    ciphers::round_of_diagonals;

// A KeyStream in global memory, as vectors of 16 bytes.
struct GlobalStream {
  const KeyStream* stream;

  __device__ __forceinline__ std::uint32_t key(int i) const { return __ldg(&global(stream)->key[i]); }
  __device__ __forceinline__ uint4 vector(int i) const {
    return __ldg(reinterpret_cast<const uint4*>(global(stream)) + i);
  }
};

// Block `counter`. The words of the stream are loaded where they are needed, at the beginning and at the end: that
// takes fewer registers. Unroll: double rounds of the nine that are a pass of the loop.
template <int Unroll, class Source>
__device__ __forceinline__ void make_key_stream(const Source& source, std::uint32_t counter, std::uint32_t (&x)[16]) {
  x[0] = first_row(0);
  x[4] = source.key(0);
  x[8] = source.key(4);
  x[12] = counter;
  quarter_round(x[0], x[4], x[8], x[12]);
#pragma unroll
  for (int i = 1; i < 4; ++i) {
    const uint4 column = source.vector(2 + i);
    x[i] = column.x;
    x[4 + i] = column.y;
    x[8 + i] = column.z;
    x[12 + i] = column.w;
  }
  round_of_diagonals(x);
#pragma unroll Unroll
  for (int i = 1; i < ciphers::double_rounds; ++i) double_round(x);
  x[0] += first_row(0);
  x[1] += first_row(1);
  x[2] += first_row(2);
  x[3] += first_row(3);
#pragma unroll
  for (int i = 1; i < 4; ++i) {
    const uint4 row = source.vector(i - 1);
    x[4 * i] += i == 3 ? counter : row.x;
    x[4 * i + 1] += row.y;
    x[4 * i + 2] += row.z;
    x[4 * i + 3] += row.w;
  }
}

template <int Unroll>
__device__ __forceinline__ void make_key_stream(const KeyStream* stream, std::uint32_t counter,
                                                std::uint32_t (&x)[16]) {
  make_key_stream<Unroll>(GlobalStream{stream}, counter, x);
}

// The text of a lane: 64 bytes, as four words of 16.
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
