// SPDX-License-Identifier: Apache-2.0
// The matrices of a key by which GHASH on tensor cores multiplies. The warps that use them make them. tensor.cuh says
// when they are used, matrix.hpp draws their layout.
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

// Shared by all that make matrices.
class MatrixParts {
 protected:
  // H^exponent in lane l, for the exponent of lane l % Width. Lanes l, l + Width, ... share the work: each takes a pair
  // of bits, first_bit(pair) and the next, and then they multiply their results. The exponents are public.
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

  // Lane 4 g + t makes the part of fragment B that it will read: column g, block t. `words` are the words of a sequence
  // from word 3 - v on, where column g belongs to word v of the product; `all` is the sequence.
  template <std::uint32_t Count>
  __device__ __forceinline__ static void pick_words(const std::uint32_t (&all)[Count + 3],
                                                    std::uint32_t (&words)[Count]) {
    const std::uint32_t v = output_bit(0, lane_index() / 4).word;
    std::uint32_t near[Count + 2];
#pragma unroll
    for (std::uint32_t k = 0; k < Count + 2; ++k) near[k] = (v & 1) != 0 ? all[k] : all[k + 1];
#pragma unroll
    for (std::uint32_t k = 0; k < Count; ++k) words[k] = (v & 2) != 0 ? near[k] : near[k + 2];
  }

  // Words 0 and 2 of the lane's masks in a step. Lane 4 i + t gives the sequence of the power for block t. is_polyval:
  // for blocks whose bytes are reversed (matrix.hpp).
  struct StepWords {
    std::uint32_t words[4];
    std::uint32_t byte_order;

    __device__ __forceinline__ StepWords(const Sequence& own, std::uint32_t i, bool is_polyval)
        : byte_order(is_polyval ? 0x3210 : 0x0123) {
      std::uint32_t all[7];
#pragma unroll
      for (std::uint32_t k = 0; k < 7; ++k) {
        all[k] = cuda::from_lane(own.words[k], powers_of_step * i + lane_index() % powers_of_step);
      }
      pick_words(all, words);
#pragma unroll
      for (std::uint32_t k = 0; k < 2; ++k) {
        const std::uint32_t first = words[k];
        words[k] = is_polyval ? words[k + 2] : first;
        words[k + 2] = is_polyval ? first : words[k + 2];
      }
    }
    // Of n-tile n: half 0 is word 0. As mask_word(), in either order of bytes.
    __device__ __forceinline__ std::uint32_t mask(std::uint32_t n, std::uint32_t half) const {
      return byte_permute(window(words[2 * half], words[2 * half + 1], begin_of(n, lane_index() / 4)), 0, byte_order);
    }
  };

  // Word t of the lane's mask, for word t of products that have not been corrected by mend(). Every lane passes the
  // same sequence.
  struct SegmentWords {
    std::uint32_t words[2];  // of word t
    std::uint32_t first[2];  // of word 0

    explicit __device__ __forceinline__ SegmentWords(const Sequence& own) {
      std::uint32_t all[5];
      pick_words(own.words, all);
      const std::uint32_t t = lane_index() % 4;
#pragma unroll
      for (std::uint32_t k = 0; k < 2; ++k) {
        const std::uint32_t low = (t & 1) != 0 ? all[k + 1] : all[k];
        const std::uint32_t high = (t & 1) != 0 ? all[k + 3] : all[k + 2];
        words[k] = (t & 2) != 0 ? high : low;
        first[k] = all[k];
      }
    }
    __device__ __forceinline__ std::uint32_t mask(std::uint32_t n) const {
      const std::uint32_t begin = begin_of(n, lane_index() / 4);
      const std::uint32_t word = mask_word(words[0], words[1], begin);
      return lane_index() % 4 == 3 ? word ^ mask_of_mending(first[0], first[1], begin) : word;
    }
  };
};

// Matrices as mma.sync reads them: four powers of H for each step, and the power between segments.
template <int Steps>
struct StepMatrices : MatrixParts {
  static constexpr std::uint32_t powers = powers_of_step * Steps;

  // Lane 4 g + t: words 0 and 2 of the mask of column g, for the power of block t, of n-tiles 2 i and 2 i + 1.
  uint4 step[Steps][tiles_of_product / 2][warp_len];
  // Lane 4 g + t: word t of the mask of column g, for the power between two segments.
  std::uint32_t segment[tiles_of_product][warp_len];

 protected:
  // Step s. Lane 4 i + t gives the sequence of the power for block t.
  __device__ __forceinline__ void fill_step(const Sequence& own, std::uint32_t i, std::uint32_t s, bool is_polyval) {
    const MatrixParts::StepWords words(own, i, is_polyval);
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; n += 2) {
      step[s][n / 2][lane_index()] =
          make_uint4(words.mask(n, 0), words.mask(n, 1), words.mask(n + 1, 0), words.mask(n + 1, 1));
    }
  }

  __device__ __forceinline__ void fill_segment(const gf128::Element& power) {
    const MatrixParts::SegmentWords words(sequence_of(power));
#pragma unroll
    for (std::uint32_t n = 0; n < tiles_of_product; ++n) segment[n][lane_index()] = words.mask(n);
  }
};

// The powers of a key from which the matrices of four steps are made, for batches with many keys. A kernel beforehand
// makes them, one key in each lane; that is cheaper than if each warp made them for itself.
//
//   place      0 1 2      3 4 ... 17      18 ... 21      22 ... 25        26 ... 29        30
//   power      1 2 3      4 8 ... 60      64 ... 67      128 ... 131      192 ... 195      256
struct PowerTable {
  static constexpr std::uint32_t steps = 4;
  static constexpr std::uint32_t len = 31;
  static constexpr std::uint32_t of_segment = len - 1;

  // The position of a power that the table has.
  static constexpr __host__ __device__ std::uint32_t place_of(std::uint32_t power) {
    if (power < 4) return power - 1;
    if (power < blocks_of_step) return 2 + power / 4;
    return 18 + 4 * (power / blocks_of_step - 1) + power % 4;
  }

  // Fills it from place 1 on, in the order of the places.
  __device__ __forceinline__ static void fill(gf128::Element* table) {
#pragma unroll 1
    for (std::uint32_t place = 1; place < len; ++place) {
      // 3, 12, 20 ... 60, 65 ... 67, 129 ... 131, 192 ... 195: a product. 2, 4, 8, 16 ... 56, 64, 128, 256: a square.
      const std::uint32_t power = place < 3 ? place + 1 : place < 18 ? 4 * (place - 2) : power_of_steps(place);
      const std::uint32_t low = power >= blocks_of_step ? power % blocks_of_step : power > 4 ? 4 : 1;
      const bool is_square =
          power >= blocks_of_step ? low == 0 && power != 192 : power % 8 == 0 || power < 3 || power == 4;
      const gf128::Element a = table[place_of(is_square ? power / 2 : power == 192 ? 128 : power - low)];
      table[place] =
          is_square ? gf128::gcm_square(a) : gf128::gcm_multiply(a, table[place_of(power == 192 ? 64 : low)]);
    }
  }

 private:
  static constexpr __host__ __device__ std::uint32_t power_of_steps(std::uint32_t place) {
    return blocks_of_step * ((place - 18) / 4 + 1) + (place - 18) % 4;
  }
};

// The matrices and powers of one key, in shared memory, for chunks (tensor.cuh).
template <int Steps>
struct Matrices : StepMatrices<Steps> {
  static constexpr std::uint32_t blocks_of_segment = Steps * blocks_of_step;
  // H^(2^j) needed to fill them: j up to the one of H^(64 Steps), which is between segments.
  static constexpr std::uint32_t squares = log_blocks_of_step + log_2(Steps) + 1;
  static_assert((Steps & (Steps - 1)) == 0, "H^(64 Steps) is one of the squares");

  // Lane 4 g + t: the factor of the row that Rows::join() gives the lane.
  gf128::Element joining[warp_len];

  // Called by all lanes of Warps warps, of which this is number `warp`; they must be synchronised before and after.
  // powers_of_two[j] is H^(2^j), j below `squares`.
  template <std::uint32_t Warps>
  __device__ __forceinline__ void fill(const gf128::Element* powers_of_two, std::uint32_t warp, bool is_polyval) {
    constexpr std::uint32_t share = (Steps + Warps - 1) / Warps;  // steps of a warp: warp, warp + Warps, ...
    constexpr std::uint32_t width = powers_of_step * share;
    const std::uint32_t lane = lane_index();
    // Bits of the exponent: 0 and 1, and from 6 on.
    const std::uint32_t own_step = lane % width / powers_of_step * Warps + warp;
    const std::uint32_t exponent = blocks_of_step * (Steps - 1 - own_step % Steps) + 3 - lane % powers_of_step;
    const Sequence own = sequence_of(MatrixParts::power<width, (2 + log_2(Steps) + 1) / 2>(
        powers_of_two, exponent,
        [](std::uint32_t pair) { return pair == 0 ? 0 : log_blocks_of_step + 2 * (pair - 1); }));
#pragma unroll 1
    for (std::uint32_t i = 0; i < share; ++i) {
      if (i * Warps + warp < Steps) this->fill_step(own, i, i * Warps + warp, is_polyval);
    }
    if (warp != Warps - 1) return;
    this->fill_segment(powers_of_two[squares - 1]);
    fill_joining(MatrixParts::power<warp_len / 2, 2>(powers_of_two, power_of_rows(),
                                                     [](std::uint32_t pair) { return 2 + 2 * pair; }),
                 0, is_polyval);
  }

  // The same by one warp, from a PowerTable.
  __device__ __forceinline__ void fill(const gf128::Element* table, bool is_polyval) {
    static_assert(Steps == PowerTable::steps && warp_len == 2 * powers_of_step * Steps, "a power a lane");
    const std::uint32_t lane = lane_index();
    const std::uint32_t power = lane < warp_len / 2
                                    ? blocks_of_step * (Steps - 1 - lane / powers_of_step) + 3 - lane % powers_of_step
                                    : power_of_rows();
    const gf128::Element own = power == 0 ? gf128::gcm_one : table[PowerTable::place_of(power)];
    const Sequence sequence = sequence_of(own);
#pragma unroll 1
    for (std::uint32_t s = 0; s < Steps; ++s) this->fill_step(sequence, s, s, is_polyval);
    this->fill_segment(table[PowerTable::of_segment]);
    fill_joining(own, warp_len / 2, is_polyval);
  }

 private:
  // In lanes g + 8 o and 16 + g + 8 o: for rows (o, g).
  __device__ __forceinline__ static std::uint32_t power_of_rows() {
    return 60 - 32 * (lane_index() / 8 % 2) - 4 * (lane_index() % 8);
  }

  // of_rows: in lanes first + g + 8 o.
  __device__ __forceinline__ void fill_joining(const gf128::Element& of_rows, std::uint32_t first, bool is_polyval) {
    const std::uint32_t lane = lane_index();
    const std::uint32_t o = lane / 2 % 2;
    const std::uint32_t g = lane / 4;
    joining[lane] = times_x(from_lane(of_rows, first + g + 8 * o), 32 * (lane % 2 ^ (is_polyval ? 1 : 0)));
  }
};

}  // namespace warpcipher::cuda::ghash
