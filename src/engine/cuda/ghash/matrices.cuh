// SPDX-License-Identifier: Apache-2.0
// The matrices of a key that GHASH on tensor cores multiplies by (tensor.cuh says when, matrix.hpp how they lie), made
// by the warps that use them.
#pragma once

#include "engine/cuda/ghash/matrix.hpp"
#include "engine/cuda/ghash/view.cuh"

namespace warpcipher::cuda::ghash {

inline constexpr std::uint32_t loads_of_step = 2;
inline constexpr std::uint32_t blocks_of_step = loads_of_step * warp_len;
inline constexpr std::uint32_t log_blocks_of_step = 6;
inline constexpr std::uint32_t powers_of_step = 4;

__device__ __forceinline__ gf128::Element from_lane(gf128::Element a, std::uint32_t lane) {
  return {__shfl_sync(0xffffffffu, a.high, static_cast<int>(lane)),
          __shfl_sync(0xffffffffu, a.low, static_cast<int>(lane))};
}

constexpr std::uint32_t log_2(std::uint32_t x) { return x <= 1 ? 0 : 1 + log_2(x / 2); }

// What the makers of matrices have in common.
class MatrixParts {
 protected:
  // H^exponent in lane l, for the exponent that lane l % Width gives. Lanes l, l + Width, ... share the work: each
  // takes a pair of bits, first_bit(pair) and the next, and then they multiply what they have. The exponents are
  // public.
  template <std::uint32_t Width, std::uint32_t Pairs, class FirstBit>
  __device__ __forceinline__ static gf128::Element power(const gf128::Element* powers_of_two, std::uint32_t exponent,
                                                         FirstBit&& first_bit) {
    static_assert(Width * Pairs <= warp_len, "a pair of bits a lane");
    const std::uint32_t pair = lane_index() / Width;
    const std::uint32_t bit = first_bit(pair < Pairs ? pair : 0);
    const std::uint32_t bits = pair < Pairs ? exponent >> bit : 0;
    gf128::Element a = gf128::gcm_one;
    gf128::Element b = gf128::gcm_one;
    if (bits & 1) a = powers_of_two[bit];
    if (bits & 2) b = powers_of_two[bit + 1];
#pragma unroll 1
    for (std::uint32_t distance = Width;; distance *= 2) {
      a = gf128::gcm_multiply(a, b);
      if (distance >= Width * std::uint32_t{Pairs}) return a;
      b = from_lane_xor(a, distance);
    }
  }

  __device__ __forceinline__ static std::uint32_t transpose(std::uint32_t row) {
#pragma unroll
    for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
      row = transpose_step(row, cuda::from_lane_xor(row, distance), lane_index(), distance);
    }
    return row;
  }

  // Word w of the masks of output bits `lane` of words 0 to 3; row: what input bit `lane` of word w contributes.
  __device__ __forceinline__ static Block masks(gf128::Element row) {
    Block mask;
#pragma unroll
    for (std::uint32_t v = 0; v < 4; ++v) mask.words[v] = transpose(word_of(row, v));
    return mask;
  }
};

// Matrices as mma.sync reads them: four powers of H a step, and that between segments.
template <int Steps>
struct StepMatrices : MatrixParts {
  static constexpr std::uint32_t powers = powers_of_step * Steps;

  // Lane 4 g + t: words 0 and 2 of the mask of column g, for the power of block t, of n-tiles 2 i and 2 i + 1.
  uint4 step[Steps][tiles_of_product / 2][warp_len];
  // Lane 4 g + t: word t of the mask of column g, for the power that a segment is away from the next.
  std::uint32_t segment[tiles_of_product][warp_len];

 protected:
  // Number 4 s + t is the power of step s and block t.
  __device__ __forceinline__ void fill_step(gf128::Element power, std::uint32_t number) {
    gf128::Element row = times_x(power, lane_index() ^ 7);
    const Block even = masks(row);
    row = times_x(times_x(row, 32), 32);
    const Block odd = masks(row);
#pragma unroll
    for (std::uint32_t v = 0; v < 4; ++v) {
      const OutputBit output{v, lane_index()};
      const std::uint32_t n = tile_of(output);
      uint4& words = step[number / powers_of_step][n / 2][4 * column_of(output) + number % powers_of_step];
      reinterpret_cast<uint2*>(&words)[n % 2] = make_uint2(even.words[v], odd.words[v]);
    }
  }

  __device__ __forceinline__ void fill_segment(gf128::Element power) {
    gf128::Element row = times_x(power, lane_index() ^ 7);
#pragma unroll
    for (std::uint32_t w = 0; w < 4; ++w) {
      const Block mask = masks(row);
#pragma unroll
      for (std::uint32_t v = 0; v < 4; ++v) {
        const OutputBit output{v, lane_index()};
        segment[tile_of(output)][4 * column_of(output) + w] = mask.words[v];
      }
      row = times_x(row, 32);
    }
  }
};

// The matrices and powers of one key, in shared memory, for chunks (tensor.cuh).
template <int Steps>
struct Matrices : StepMatrices<Steps> {
  using StepMatrices<Steps>::powers;
  static constexpr std::uint32_t blocks_of_segment = Steps * blocks_of_step;
  // H^(2^j) needed to fill them: j up to that of H^(64 Steps), which is between segments.
  static constexpr std::uint32_t squares = log_blocks_of_step + log_2(Steps) + 1;
  static_assert((Steps & (Steps - 1)) == 0, "H^(64 Steps) is one of the squares");

  // Lane 4 g + t: what the row that Rows::join() gives the lane is multiplied by.
  gf128::Element joining[warp_len];

  // Called by all lanes of Warps warps, of which this is number `warp`; they must be synchronised before and after.
  // powers_of_two[j] is H^(2^j), j below `squares`.
  template <std::uint32_t Warps>
  __device__ __forceinline__ void fill(const gf128::Element* powers_of_two, std::uint32_t warp) {
    constexpr std::uint32_t share = powers < Warps ? 1 : powers / Warps;
    const std::uint32_t lane = lane_index();
    // Bits of the exponent: 0 and 1, and from 6 on.
    const std::uint32_t number = lane % share * Warps + warp;
    const std::uint32_t exponent =
        blocks_of_step * (Steps - 1 - number / powers_of_step % Steps) + 3 - number % powers_of_step;
    const gf128::Element own = MatrixParts::power<share, (2 + log_2(Steps) + 1) / 2>(
        powers_of_two, exponent,
        [](std::uint32_t pair) { return pair == 0 ? 0 : log_blocks_of_step + 2 * (pair - 1); });
#pragma unroll 1
    for (std::uint32_t i = 0; i < share; ++i) {
      if (i * Warps + warp < powers) this->fill_step(from_lane(own, i), i * Warps + warp);
    }
    if (warp != Warps - 1) return;
    this->fill_segment(powers_of_two[squares - 1]);
    const std::uint32_t o = lane / 2 % 2;
    const std::uint32_t g = lane / 4;
    const gf128::Element of_rows = MatrixParts::power<warp_len / 2, 2>(  // lane g + 8 o: that of rows (o, g)
        powers_of_two, 60 - 32 * (lane / 8 % 2) - 4 * (lane % 8), [](std::uint32_t pair) { return 2 + 2 * pair; });
    joining[lane] = times_x(from_lane(of_rows, g + 8 * o), 32 * (lane % 2));
  }
};

}  // namespace warpcipher::cuda::ghash
