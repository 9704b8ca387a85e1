// SPDX-License-Identifier: Apache-2.0
// GHASH on tensor cores: a warp sums X_i H^(n-1-i) over n blocks with the one-bit matrix instruction, which counts the ones of
// A & B for 16 rows and 8 columns at a time. Multiplication by a power of H is a matrix B (matrix.hpp), blocks are A as
// they lie in memory; counts pile up over a whole segment, and only their parity is taken.
//
// A step is 128 consecutive blocks: four loads of 16 bytes a lane, load o giving lane 4 g + t block 32 o + 4 g + t. The four
// blocks of a group g share row g of the instruction and meet four powers of H, so a load makes eight rows:
//
//   load o   | block 32 o + 0, 1, 2, 3 | 4, 5, 6, 7 | ...  | 28, 29, 30, 31 |
//   row            (o, g = 0)            (o, 1)       ...    (o, 7)             times H^3, H^2, H^1, H^0
//
// A segment is Steps steps; step s multiplies by H^(128 (Steps - 1 - s)) as well. Between segments each row's parity, which
// is again a block in memory order, is multiplied by H^(128 Steps) (Horner's rule). At the end the 32 rows, spaced four
// blocks apart, are joined by five ordinary products.
//
// The time depends on the number of blocks alone: matrices are read by position, never by value.
#pragma once

#include "engine/cuda/block.cuh"
#include "engine/cuda/ghash/matrix.hpp"

namespace warpcipher::cuda::ghash {

inline constexpr std::uint32_t loads_of_step = 4;
inline constexpr std::uint32_t blocks_of_step = loads_of_step * warp_len;
inline constexpr std::uint32_t powers_of_step = 4;
inline constexpr std::uint32_t log_blocks_of_step = 7;

__device__ __forceinline__ gf128::Element to_element(const Block& block) {
  return {std::uint64_t{byte_swap(block.words[0])} << 32 | byte_swap(block.words[1]),
          std::uint64_t{byte_swap(block.words[2])} << 32 | byte_swap(block.words[3])};
}

__device__ __forceinline__ gf128::Element from_lane(gf128::Element a, std::uint32_t lane) {
  return {__shfl_sync(0xffffffffu, a.high, static_cast<int>(lane)),
          __shfl_sync(0xffffffffu, a.low, static_cast<int>(lane))};
}

// mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc: c[16][8] += popc(a[16][256] & b[256][8]).
__device__ __forceinline__ void count_ones(std::int32_t (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                           std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
  __trap();  // has_one_bit_matrices() is false there
#endif
}

// mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc: c[16][8] = popc(a[16][128] & b[128][8]).
__device__ __forceinline__ void count_ones_anew(std::int32_t (&c)[4], std::uint32_t a0, std::uint32_t a1,
                                                std::uint32_t b0) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a0), "r"(a1), "r"(b0), "r"(0));
#else
  __trap();
#endif
}

// The matrices of one key, in shared memory.
template <int Steps>
struct Matrices {
  static constexpr std::uint32_t blocks_of_segment = Steps * blocks_of_step;
  static constexpr std::uint32_t powers = powers_of_step * Steps + 1;
  // H^(2^j) needed to fill them and to join rows: j up to that of H^(128 Steps).
  static constexpr std::uint32_t squares = log_blocks_of_step + (Steps >= 8 ? 3 : Steps >= 4 ? 2 : Steps >= 2 ? 1 : 0) + 1;
  static_assert((Steps & (Steps - 1)) == 0 && Steps <= 8, "a warp computes all powers at once, one a lane");

  uint4 step[Steps][tiles_of_product][warp_len];      // lane 4 g + t: column g of the n-tile, of the power for block t
  std::uint32_t segment[tiles_of_product][warp_len];  // lane 4 g + t: word t of column g, of H^(128 Steps)

  // Called by all lanes of `warps` warps, of which this is number `warp`; they must be synchronised before and after.
  // powers_of_two[j] is H^(2^j), j below `squares`.
  __device__ __forceinline__ void fill(const gf128::Element* powers_of_two, std::uint32_t warp, std::uint32_t warps) {
    // Lane 4 s + t computes the power of step s and block t; the last one is computed by all.
    const std::uint32_t own = blocks_of_step * (Steps - 1 - lane_index() / 4 % Steps) + 3 - lane_index() % 4;
    gf128::Element own_power = gf128::gcm_one;
#pragma unroll 1
    for (std::uint32_t j = 0; j + 1 < squares; ++j) {
      if (j >= 2 && j < log_blocks_of_step) continue;
      const gf128::Element product = gf128::gcm_multiply(own_power, powers_of_two[j]);
      if (own >> j & 1) own_power = product;
    }
#pragma unroll 1
    for (std::uint32_t p = warp; p < powers; p += warps) {
      const bool last = p == powers - 1;
      const gf128::Element power = last ? powers_of_two[squares - 1] : from_lane(own_power, p);
      fill_one(power, p, last);
    }
  }

 private:
  __device__ __forceinline__ static std::uint32_t transpose(std::uint32_t row) {
#pragma unroll
    for (std::uint32_t distance = 16; distance > 0; distance /= 2) {
      row = transpose_step(row, from_lane_xor(row, distance), lane_index(), distance);
    }
    return row;
  }

  __device__ __forceinline__ void fill_one(gf128::Element power, std::uint32_t p, bool last) {
    const std::uint32_t lane = lane_index();
    Block mask[4];  // of output bit `lane` of each word
    gf128::Element row = times_x(power, lane ^ 7);  // input bit `lane` of word w
#pragma unroll
    for (std::uint32_t w = 0; w < 4; ++w) {
#pragma unroll
      for (std::uint32_t v = 0; v < 4; ++v) mask[v].words[w] = transpose(word_of(row, v));
      row = times_x(row, 32);
    }
#pragma unroll
    for (std::uint32_t v = 0; v < 4; ++v) {
      const uint4 words = make_uint4(mask[v].words[0], mask[v].words[1], mask[v].words[2], mask[v].words[3]);
      const OutputBit output{v, lane};
      const std::uint32_t n = tile_of(output);
      const std::uint32_t g = column_of(output);
      if (last) {
        *reinterpret_cast<uint4*>(&segment[n][4 * g]) = words;
      } else {
        step[p / 4][n][4 * g + p % 4] = words;
      }
    }
  }
};

// The 32 rows of a warp: what has been summed so far.
template <int Steps>
class Rows {
 public:
  static constexpr std::uint32_t tiles = loads_of_step / 2;  // of 16 rows: those of two loads

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (std::uint32_t r = 0; r < tiles; ++r) {
#pragma unroll
      for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
#pragma unroll
        for (std::uint32_t i = 0; i < 4; ++i) counts_[r][n][i] = 0;
      }
    }
  }

  // Step s of a segment.
  __device__ __forceinline__ void add(const Matrices<Steps>& matrices, std::uint32_t s, const uint4 (&x)[loads_of_step]) {
    const uint4* columns = &matrices.step[s][0][lane_index()];
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; n += 2) {  // two n-tiles, so that an accumulator rests between uses
      const uint4 b[2] = {columns[warp_len * n], columns[warp_len * (n + 1)]};
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) {
#pragma unroll
        for (std::uint32_t r = 0; r < tiles; ++r) {
          count_ones(counts_[r][n + i], x[2 * r].x, x[2 * r + 1].x, x[2 * r].y, x[2 * r + 1].y, b[i].x, b[i].y);
        }
      }
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) {
#pragma unroll
        for (std::uint32_t r = 0; r < tiles; ++r) {
          count_ones(counts_[r][n + i], x[2 * r].z, x[2 * r + 1].z, x[2 * r].w, x[2 * r + 1].w, b[i].z, b[i].w);
        }
      }
    }
  }

  // Multiplies every row by H^(128 Steps), before the next segment.
  __device__ __forceinline__ void next_segment(const Matrices<Steps>& matrices) {
    std::uint32_t words[loads_of_step];
    parities(words);
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
      const std::uint32_t b = matrices.segment[n][lane_index()];
#pragma unroll
      for (std::uint32_t r = 0; r < tiles; ++r) count_ones_anew(counts_[r][n], words[2 * r], words[2 * r + 1], b);
    }
  }

  // The sum, in lane 0. powers_of_two[j] is H^(2^j), j from 0 to 6.
  __device__ __forceinline__ gf128::Element join(const gf128::Element* powers_of_two) const {
    std::uint32_t words[loads_of_step];
    parities(words);
    transpose_quad(words);
    // Lane 4 g + t has the row (o = t, g), whose last block is number 8 t + g of every fourth.
    gf128::Element sum = to_element({{words[0], words[1], words[2], words[3]}});
#pragma unroll 1
    for (std::uint32_t j = 0; j < 5; ++j) {
      const std::uint32_t distance = j < 3 ? 4u << j : 1u << (j - 3);
      const gf128::Element upper{from_lane_xor(sum.high, distance), from_lane_xor(sum.low, distance)};
      sum = gf128::add(gf128::gcm_multiply(sum, powers_of_two[2 + j]), upper);
    }
    return sum;
  }

 private:
  // Word t of the rows g of the four loads, in lane 4 g + t. A funnel shift takes one parity: bit 0 of the count enters
  // at the top.
  __device__ __forceinline__ void parities(std::uint32_t (&words)[loads_of_step]) const {
#pragma unroll
    for (std::uint32_t o = 0; o < loads_of_step; ++o) {
      words[o] = 0;
#pragma unroll
      for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
#pragma unroll
        for (std::uint32_t j = 0; j < 2; ++j) {
          words[o] = __funnelshift_r(words[o], static_cast<std::uint32_t>(counts_[o / 2][n][2 * (o % 2) + j]), 1);
        }
      }
    }
  }

  // words[o] of lane t of each four becomes words[t] of lane o.
  __device__ __forceinline__ static void transpose_quad(std::uint32_t (&words)[loads_of_step]) {
#pragma unroll
    for (std::uint32_t distance = 2; distance > 0; distance /= 2) {
      const bool upper = (lane_index() & distance) != 0;
#pragma unroll
      for (std::uint32_t i = 0; i < loads_of_step; ++i) {
        if (i & distance) continue;
        const std::uint32_t received = from_lane_xor(upper ? words[i] : words[i + distance], distance);
        (upper ? words[i] : words[i + distance]) = received;
      }
    }
  }

  std::int32_t counts_[tiles][tiles_of_product][4];
};

}  // namespace warpcipher::cuda::ghash
