// SPDX-License-Identifier: Apache-2.0
// Multiplication by a fixed element P of GF(2^128) as a 128 x 128 matrix over GF(2), in the bit order of blocks in
// memory, and the layout that the one-bit matrix instruction needs. Plain functions for host and device, so that the
// layout can be tested without a GPU.
//
// Bit b of word w of a block (words little-endian as loaded) is the coefficient of x^(32 w + (b ^ 7)): GCM counts bits
// from the most significant bit of the first byte (SP 800-38D, section 6.3).
//
// Output bit b of word v of X * P is the parity of X & mask(v, b). A warp passes 32 blocks, block l in lane l, to
// mma.m16n8k256 as they were loaded: words 0 to 3 of the block are the lane's four registers of A. So, with l = 4 g +
// t,
//
//   A  row g      word 0 and word 2 of blocks 4 g + t   k = 32 t ... and k = 128 + 32 t ...
//      row g + 8  word 1 and word 3
//   B  column g   word 0 and word 2 of a mask           of the power of H that block t of each four is multiplied by
//   C  row g      columns 2 t, 2 t + 1                  the product of the even words
//      row g + 8  the same columns                      x^-32 times the product of the odd words
//
// Column 2 v + j of n-tile n is output bit 2 n + j of word v. Then the parities that a lane collects over the 16
// n-tiles are word t of the product, as in memory, and can be an operand themselves.
//
// POLYVAL reverses the bytes of blocks (RFC 8452, appendix A): word w as loaded is word 3 - w of the block with its
// bytes swapped. Then words 0 and 2 of a mask change places, and their bytes are swapped, so that row g + 8 has the
// product of the even words and row g x^-32 times the product of the odd ones. All that follows is as for GHASH.
//
// No matrix needs to be transposed. Let L(Y) be Y's coefficient of x^127, and s_n = L(P x^n). Then L(X P x^j) is the
// sum of X_i s_(i+j): a column is 128 consecutive elements of one sequence, found by a shift. L(Y x^j) is Y's
// coefficient of x^(127-j), except that from j = 121 on other coefficients are added, because x^128 = x^7 + x^2 + x +
// 1. So seven coefficients of a product are wrong until mend() corrects them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cipher/gf128.hpp"

namespace warpcipher::cuda::ghash {

inline constexpr std::uint32_t tiles_of_product = 16;  // n-tiles of 8 columns make 128

// An output bit of the product: bit `bit` of word `word`.
struct OutputBit {
  std::uint32_t word;
  std::uint32_t bit;
  friend constexpr bool operator==(const OutputBit&, const OutputBit&) = default;
};

// The result of column `column` (0 to 7) of n-tile `tile`.
WARPCIPHER_HD constexpr OutputBit output_bit(std::uint32_t tile, std::uint32_t column) {
  return {column / 2, 2 * tile + column % 2};
}

WARPCIPHER_HD constexpr std::uint32_t column_of(OutputBit output) { return 2 * output.word + output.bit % 2; }

// x^n * a for n from 0 to 32. The time depends on n, which is public.
WARPCIPHER_HD constexpr gf128::Element times_x(gf128::Element a, std::uint32_t n) {
  if (n == 0) return a;
  const std::uint64_t leaving = a.low << (64 - n);  // the coefficients of x^128 and up, the first at bit 63
  return {(a.high >> n) ^ leaving ^ (leaving >> 1) ^ (leaving >> 2) ^ (leaving >> 7),
          (a.low >> n) | (a.high << (64 - n))};
}

// Y from the values L(Y x^j), with the value for j as the coefficient of x^(127-j). The highest coefficients are added
// to the seven lowest.
WARPCIPHER_HD constexpr gf128::Element mend(gf128::Element a) {
  return {a.high ^ a.low << 57 ^ a.low << 62 ^ a.low << 63, a.low};
}

// s_0 to s_255: s_n is bit 31 - n % 32 of word n / 32.
struct Sequence {
  std::uint32_t words[8];
};

// 32 bits from bit `begin` on of two words, counted from the most significant; begin is below 32.
WARPCIPHER_HD constexpr std::uint32_t window(std::uint32_t word, std::uint32_t next, std::uint32_t begin) {
  return static_cast<std::uint32_t>((std::uint64_t{word} << 32 | next) << begin >> 32);
}

WARPCIPHER_HD constexpr std::uint32_t reverse_bits(std::uint32_t x) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) return __brev(x);
#endif
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  return byte_swap32(x);
}

WARPCIPHER_HD constexpr Sequence sequence_of(gf128::Element power) {
  const gf128::Element a = mend(power);
  Sequence s{};
  s.words[0] = reverse_bits(static_cast<std::uint32_t>(a.low));
  s.words[1] = reverse_bits(static_cast<std::uint32_t>(a.low >> 32));
  s.words[2] = reverse_bits(static_cast<std::uint32_t>(a.high));
  s.words[3] = reverse_bits(static_cast<std::uint32_t>(a.high >> 32));
  for (int k = 0; k < 4; ++k) {  // s_(n+128) = s_(n+7) + s_(n+2) + s_(n+1) + s_n
    const std::uint32_t word = s.words[k];
    const std::uint32_t next = s.words[k + 1];
    s.words[k + 4] = word ^ window(word, next, 1) ^ window(word, next, 2) ^ window(word, next, 7);
  }
  return s;
}

// Word w of the mask of an output bit of word v begins in word 3 - v + w of the sequence, at this bit.
WARPCIPHER_HD constexpr std::uint32_t begin_of(std::uint32_t tile, std::uint32_t column) {
  return 30 - ((2 * tile) ^ 6) + column % 2;  // 31 - (bit ^ 7)
}

// That word, for a block as in memory. `word` and `next` are words of the sequence.
WARPCIPHER_HD constexpr std::uint32_t mask_word(std::uint32_t word, std::uint32_t next, std::uint32_t begin) {
  return byte_swap32(window(word, next, begin));
}

// The value to add to word 3 of a mask so that it fits products that have not been corrected by mend(). `word` and
// `next` are the words of the sequence for word 0 of the mask.
WARPCIPHER_HD constexpr std::uint32_t mask_of_mending(std::uint32_t word, std::uint32_t next, std::uint32_t begin) {
  const std::uint32_t first = window(word, next, begin);
  return byte_swap32(first >> 25 ^ first >> 30 ^ first >> 31);
}

// The correction of word 0 of a block whose word 3 is `last`, as in memory.
WARPCIPHER_HD constexpr std::uint32_t word_of_mending(std::uint32_t last) {
  const std::uint32_t word = byte_swap32(last);
  return byte_swap32(word << 25 ^ word << 30 ^ word << 31);
}

// Word `w` of x^32 * a, as in memory, of word w - 1 (`below`; of no meaning for w = 0) and word 3 (`last`) of a.
WARPCIPHER_HD constexpr std::uint32_t word_times_x32(std::uint32_t w, std::uint32_t below, std::uint32_t last) {
  const std::uint32_t leaving = byte_swap32(last);  // the coefficients of x^128 and up, the first at bit 31
  const std::uint32_t first = leaving ^ leaving >> 1 ^ leaving >> 2 ^ leaving >> 7;
  const std::uint32_t second = leaving << 31 ^ leaving << 30 ^ leaving << 25;
  return (w == 0 ? 0 : below) ^ byte_swap32(w == 0 ? first : w == 1 ? second : 0);
}

}  // namespace warpcipher::cuda::ghash
