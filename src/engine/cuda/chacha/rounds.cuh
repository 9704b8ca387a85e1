// SPDX-License-Identifier: Apache-2.0
// A block of ChaCha20's key stream in a lane.
//
// The pipe of logic bounds it: XOR and rotations. Additions go to the multiply pipe, where the compiler makes them
// products by one.
#pragma once

#include "cipher/chacha.hpp"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda::chacha {

namespace ciphers = warpcipher::chacha;
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

}  // namespace warpcipher::cuda::chacha
