// SPDX-License-Identifier: Apache-2.0
// A block of ChaCha20's key stream in a lane.
//
// The pipe of logic bounds it: XOR and rotations. Additions go to the multiply pipe, where the compiler makes them
// products by one.
#pragma once

#include "cipher/chacha.hpp"
#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda::chacha {

namespace ciphers = warpcipher::chacha;

// RFC 8439, section 2.1.
__device__ __forceinline__ void quarter_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
  a += b;
  d = rotate_left(d ^ a, 16);
  c += d;
  b = rotate_left(b ^ c, 12);
  a += b;
  d = rotate_left(d ^ a, 8);
  c += d;
  b = rotate_left(b ^ c, 7);
}

__device__ __forceinline__ void round_of_columns(std::uint32_t (&x)[16]) {
  quarter_round(x[0], x[4], x[8], x[12]);
  quarter_round(x[1], x[5], x[9], x[13]);
  quarter_round(x[2], x[6], x[10], x[14]);
  quarter_round(x[3], x[7], x[11], x[15]);
}

__device__ __forceinline__ void round_of_diagonals(std::uint32_t (&x)[16]) {
  quarter_round(x[0], x[5], x[10], x[15]);
  quarter_round(x[1], x[6], x[11], x[12]);
  quarter_round(x[2], x[7], x[8], x[13]);
  quarter_round(x[3], x[4], x[9], x[14]);
}

// "expand 32-byte k": section 2.3.
__device__ __forceinline__ uint4 constants() { return {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}; }

// Block `counter`. The words of the stream are loaded where they are needed, at the beginning and at the end: that
// takes fewer registers. Unroll: double rounds of the nine that are a pass of the loop.
template <int Unroll>
__device__ __forceinline__ void make_key_stream(const KeyStream* stream, std::uint32_t counter,
                                                std::uint32_t (&x)[16]) {
  const auto* const rows = reinterpret_cast<const uint4*>(global(stream));
  const auto* const columns = reinterpret_cast<const uint4*>(global(stream)->columns);
  const uint4 first = constants();
  x[0] = first.x;
  x[4] = __ldg(&stream->key[0]);
  x[8] = __ldg(&stream->key[4]);
  x[12] = counter;
  quarter_round(x[0], x[4], x[8], x[12]);
#pragma unroll
  for (int i = 1; i < 4; ++i) {
    const uint4 column = __ldg(columns + i - 1);
    x[i] = column.x;
    x[4 + i] = column.y;
    x[8 + i] = column.z;
    x[12 + i] = column.w;
  }
  round_of_diagonals(x);
#pragma unroll Unroll
  for (int i = 1; i < ciphers::double_rounds; ++i) {
    round_of_columns(x);
    round_of_diagonals(x);
  }
  x[0] += first.x;
  x[1] += first.y;
  x[2] += first.z;
  x[3] += first.w;
#pragma unroll
  for (int i = 1; i < 4; ++i) {
    const uint4 row = __ldg(rows + i - 1);
    x[4 * i] += i == 3 ? counter : row.x;
    x[4 * i + 1] += row.y;
    x[4 * i + 2] += row.z;
    x[4 * i + 3] += row.w;
  }
}

}  // namespace warpcipher::cuda::chacha
