// SPDX-License-Identifier: Apache-2.0
// The sums that a warp keeps in registers while it hashes a chunk on tensor cores.
#pragma once

#include "engine/cuda/ghash/counts.cuh"
#include "engine/cuda/ghash/matrices.cuh"

namespace warpcipher::cuda::ghash {

// The rows of a warp: the sums so far.
template <int Steps>
class Rows {
 public:
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].clear();
  }

  // The B operands of the first half of a step, which the step before loads.
  struct Ready {
    uint4 columns[4];
  };

  __device__ __forceinline__ static void load(const Matrices<Steps>& matrices, std::uint32_t s, std::uint32_t half,
                                              uint4 (&columns)[4]) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) columns[i] = matrices.step[s][4 * half + i][lane_index()];
  }

  // Runs step s of a segment. Before, `ready` has its own operands; afterwards those of step `next`.
  __device__ __forceinline__ void add(const Matrices<Steps>& matrices, std::uint32_t s, std::uint32_t next,
                                      Ready& ready, const uint4 (&x)[loads_of_step]) {
    uint4 second[4];
    load(matrices, s, 1, second);
    add_half(0, ready.columns, x);
    load(matrices, next, 0, ready.columns);
    add_half(1, second, x);
  }

  // Multiplies every row by H^(64 Steps), before the next segment.
  __device__ __forceinline__ void next_segment(const Matrices<Steps>& matrices) {
    std::uint32_t words[2 * loads_of_step];
    parities(words);
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
      const std::uint32_t b = matrices.segment[n][lane_index()];
#pragma unroll
      for (std::uint32_t o = 0; o < loads_of_step; ++o) {
        counts_[o].begin(n, words[2 * o], words[2 * o + 1], b);
      }
    }
  }

  // The sum, in all lanes.
  __device__ __forceinline__ gf128::Element join(const Matrices<Steps>& matrices) const {
    std::uint32_t words[2 * loads_of_step];
    parities(words);
    transpose_quad(words);
    // Lane 4 g + t has the row (o = t / 2, even or odd = t % 2, g).
    const gf128::Element row = mend(to_element({{words[0], words[1], words[2], words[3]}}));
    gf128::Element sum = gf128::gcm_multiply(row, matrices.joining[lane_index()]);
#pragma unroll
    for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
      sum = gf128::add(sum, from_lane_xor(sum, distance));
    }
    return sum;
  }

 private:
  __device__ __forceinline__ void add_half(std::uint32_t half, const uint4 (&columns)[4],
                                           const uint4 (&x)[loads_of_step]) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t n = 8 * half + 2 * i;
#pragma unroll
      for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].add(n, x[o], columns[i].x, columns[i].y);
#pragma unroll
      for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].add(n + 1, x[o], columns[i].z, columns[i].w);
    }
  }

  // Word t of the rows g, in lane 4 g + t: those of load o, even words and odd words, are words[2 o] and words[2 o +
  // 1].
  __device__ __forceinline__ void parities(std::uint32_t (&words)[2 * loads_of_step]) const {
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) counts_[o].parities(words[2 * o], words[2 * o + 1]);
  }

  // words[i] of lane t of each four becomes words[t] of lane i.
  __device__ __forceinline__ static void transpose_quad(std::uint32_t (&words)[2 * loads_of_step]) {
    static_assert(2 * loads_of_step == 4, "four lanes hold the words of a row");
#pragma unroll
    for (std::uint32_t distance = 2; distance > 0; distance /= 2) {
      const bool upper = (lane_index() & distance) != 0;
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        if (i & distance) continue;
        const std::uint32_t received = cuda::from_lane_xor(upper ? words[i] : words[i + distance], distance);
        (upper ? words[i] : words[i + distance]) = received;
      }
    }
  }

  Counts counts_[loads_of_step];
};

}  // namespace warpcipher::cuda::ghash
