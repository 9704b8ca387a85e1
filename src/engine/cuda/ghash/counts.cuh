// SPDX-License-Identifier: Apache-2.0
// The accumulator of GHASH on tensor cores: the counts that a warp keeps in registers during a segment, and the sums in
// GF(2) that they represent.
#pragma once

#include "engine/cuda/ghash/instructions.cuh"
#include "engine/cuda/ghash/matrix.hpp"

namespace warpcipher::cuda::ghash {

// A product of 16 rows and 128 columns for each warp, as fragment C of matrix.hpp: of row g, even words and odd words,
// lane 4 g + t has the columns whose parities are word t.
struct Counts {
  std::int32_t of_tile[tiles_of_product][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) of_tile[n][i] = 0;
    }
  }

  // Word t of row g. A funnel shift takes one parity: bit 0 of the count enters at the top.
  __device__ __forceinline__ void parities(std::uint32_t& even, std::uint32_t& odd) const {
    even = odd = 0;
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
#pragma unroll
      for (std::uint32_t j = 0; j < 2; ++j) {
        even = __funnelshift_r(even, static_cast<std::uint32_t>(of_tile[n][j]), 1);
        odd = __funnelshift_r(odd, static_cast<std::uint32_t>(of_tile[n][2 + j]), 1);
      }
    }
  }

  // Of n-tile n: counts the ones that a step's blocks and a mask have in common.
  __device__ __forceinline__ void add(std::uint32_t n, const uint4& blocks, std::uint32_t mask0, std::uint32_t mask1) {
    count_ones(of_tile[n], blocks, mask0, mask1);
  }

  // Replaces the counts by those for the words that the parities have become, which begin the next segment.
  __device__ __forceinline__ void begin(std::uint32_t n, std::uint32_t even, std::uint32_t odd, std::uint32_t mask) {
    count_ones_anew(of_tile[n], even, odd, mask);
  }
};

}  // namespace warpcipher::cuda::ghash
