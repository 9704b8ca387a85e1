// SPDX-License-Identifier: Apache-2.0
// Multiplication by a fixed element P of GF(2^128) as a 128 x 128 matrix over GF(2), in the bit order that blocks have
// in memory, and where the one-bit matrix instruction wants its pieces. Plain functions of host and device, so that the
// layout is tested without a GPU.
//
// Bit b of word w of a block (words little-endian as loaded) is the coefficient of x^(32 w + (b ^ 7)): GCM counts from
// the first byte's most significant bit (SP 800-38D, section 6.3).
//
// Output bit b of word v of X * P is the parity of X & mask(v, b). A warp feeds 32 blocks, lane l with block l, to
// mma.m16n8k256 just as they were loaded: words 0 to 3 of the block are the lane's four registers of A. So, l = 4 g +
// t,
//
//   A  row g      word 0 and word 2 of blocks 4 g + t   k = 32 t ... and k = 128 + 32 t ...
//      row g + 8  word 1 and word 3
//   B  column g   word 0 and word 2 of a mask           of the power of H that block t of each four is multiplied by
//   C  row g      columns 2 t, 2 t + 1                  the product of the even words
//      row g + 8  the same columns                      x^-32 times the product of the odd words
//
// Column 2 v + j of n-tile n is output bit 2 n + j of word v: then the parities that a lane collects over the 16
// n-tiles are word t of the product as it lies in memory, and can be an operand themselves.
#pragma once

#include <cstdint>

#include "cipher/gf128.hpp"

namespace warpcipher::cuda::ghash {

inline constexpr std::uint32_t tiles_of_product = 16;  // n-tiles of 8 columns make 128

// An output bit of the product: bit `bit` of word `word`.
struct OutputBit {
  std::uint32_t word;
  std::uint32_t bit;
  friend constexpr bool operator==(const OutputBit&, const OutputBit&) = default;
};

// What column `column` (0 to 7) of n-tile `tile` computes.
WARPCIPHER_HD constexpr OutputBit output_bit(std::uint32_t tile, std::uint32_t column) {
  return {column / 2, 2 * tile + column % 2};
}

WARPCIPHER_HD constexpr std::uint32_t tile_of(OutputBit output) { return output.bit / 2; }
WARPCIPHER_HD constexpr std::uint32_t column_of(OutputBit output) { return 2 * output.word + output.bit % 2; }

// x^n * a for n from 0 to 32. The time depends on n, which is public.
WARPCIPHER_HD constexpr gf128::Element times_x(gf128::Element a, std::uint32_t n) {
  if (n == 0) return a;
  const std::uint64_t leaving = a.low << (64 - n);  // the coefficients of x^128 and up, the first at bit 63
  return {(a.high >> n) ^ leaving ^ (leaving >> 1) ^ (leaving >> 2) ^ (leaving >> 7),
          (a.low >> n) | (a.high << (64 - n))};
}

// Word w of a block whose value is `a`, as loaded from memory.
WARPCIPHER_HD constexpr std::uint32_t word_of(gf128::Element a, std::uint32_t w) {
  const std::uint64_t half = w < 2 ? a.high : a.low;
  return byte_swap32(static_cast<std::uint32_t>(w % 2 == 0 ? half >> 32 : half));
}

// Word `w` of x^32 * a, as in memory, of word w - 1 (`below`; of no meaning for w = 0) and word 3 (`last`) of a.
WARPCIPHER_HD constexpr std::uint32_t word_times_x32(std::uint32_t w, std::uint32_t below, std::uint32_t last) {
  const std::uint32_t leaving = byte_swap32(last);  // the coefficients of x^128 and up, the first at bit 31
  const std::uint32_t first = leaving ^ leaving >> 1 ^ leaving >> 2 ^ leaving >> 7;
  const std::uint32_t second = leaving << 31 ^ leaving << 30 ^ leaving << 25;
  return (w == 0 ? 0 : below) ^ byte_swap32(w == 0 ? first : w == 1 ? second : 0);
}

// One of the five steps that transpose a 32 x 32 bit matrix whose row i is in lane i: `own` is the lane's row, `other`
// that of the lane whose index differs by `distance` = 16, 8, 4, 2, 1 in turn.
WARPCIPHER_HD constexpr std::uint32_t transpose_step(std::uint32_t own, std::uint32_t other, std::uint32_t lane,
                                              std::uint32_t distance) {
  std::uint32_t low = 0xffffffffu;  // the lower half of each group of 2 * distance bits
  for (std::uint32_t d = 16; d >= distance; d /= 2) low ^= low << d;
  return (lane & distance) != 0 ? (own & ~low) | (other >> distance & low) : (own & low) | (other << distance & ~low);
}

}  // namespace warpcipher::cuda::ghash
