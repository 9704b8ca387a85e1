// SPDX-License-Identifier: Apache-2.0
// The combined SubBytes and MixColumns tables of AES (section 5.2 of the Rijndael proposal) for kernels that
// look up in memory where every lane has its own bank. A column is the 32-bit word that a little-endian
// machine loads from memory, so no byte is ever swapped:
//
//   bits 31..24  23..16  15..8   7..0
//   row     3       2      1      0
//
// te0[x] and td0[x] are row 0's contribution to its column; row r's is the same word rotated left by 8 r.
#pragma once

#include <array>
#include <cstdint>

#include "cipher/aes.hpp"

namespace warpcipher::aes {

// The S-box of AES and its inverse from their definition in FIPS 197: what every table and circuit of AES is
// made from or proven against. Looking a secret up in these tables is not constant time.

// Product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 4.2).
constexpr std::uint8_t multiply(std::uint8_t a, std::uint8_t b) {
  unsigned product = 0;
  unsigned shifted = a;
  for (unsigned i = 0; i < 8; ++i) {
    product ^= shifted * (static_cast<unsigned>(b) >> i & 1u);
    shifted = (shifted << 1) ^ (0x11bu * (shifted >> 7));
  }
  return static_cast<std::uint8_t>(product);
}

namespace detail {

// The multiplicative inverse, 0 for 0: x^254 = x^2 x^4 ... x^128.
constexpr std::uint8_t invert(std::uint8_t x) {
  std::uint8_t power = x;
  std::uint8_t product = 1;
  for (int i = 0; i < 7; ++i) {
    power = multiply(power, power);
    product = multiply(product, power);
  }
  return product;
}

// Section 5.1.1: the inverse, then an affine map over GF(2): bit i is the sum of bits i, i+4, i+5, i+6, i+7
// and of bit i of 0x63.
constexpr std::array<std::uint8_t, 256> make_sbox() {
  std::array<std::uint8_t, 256> box{};
  for (unsigned x = 0; x < 256; ++x) {
    const unsigned inverse = invert(static_cast<std::uint8_t>(x));
    const unsigned twice = inverse | inverse << 8;
    box[x] = static_cast<std::uint8_t>(inverse ^ twice >> 4 ^ twice >> 5 ^ twice >> 6 ^ twice >> 7 ^ 0x63u);
  }
  return box;
}

constexpr std::array<std::uint8_t, 256> invert_table(const std::array<std::uint8_t, 256>& table) {
  std::array<std::uint8_t, 256> inverse{};
  for (unsigned x = 0; x < 256; ++x) inverse[table[x]] = static_cast<std::uint8_t>(x);
  return inverse;
}

}  // namespace detail

inline constexpr std::array<std::uint8_t, 256> sbox = detail::make_sbox();
inline constexpr std::array<std::uint8_t, 256> inverse_sbox = detail::invert_table(sbox);

static_assert(multiply(0x57, 0x83) == 0xc1, "FIPS 197, section 4.2");
static_assert(multiply(0x57, 0x13) == 0xfe, "FIPS 197, section 4.2.1");
static_assert(sbox[0x53] == 0xed, "FIPS 197, section 5.1.1");
static_assert(sbox[0x00] == 0x63 && sbox[0x0f] == 0x76 && sbox[0xf0] == 0x8c && sbox[0xff] == 0x16,
              "FIPS 197, figure 7");
static_assert(inverse_sbox[0x00] == 0x52 && inverse_sbox[0x0f] == 0xfb && inverse_sbox[0xf0] == 0x17 &&
                  inverse_sbox[0xff] == 0x7d,
              "FIPS 197, figure 14");

namespace detail {

// The first column of the MixColumns matrix (row 0 in the low byte) times each value of `box`.
constexpr std::array<std::uint32_t, 256> make_table(const std::array<std::uint8_t, 256>& box, std::uint8_t m0,
                                                    std::uint8_t m1, std::uint8_t m2, std::uint8_t m3) {
  std::array<std::uint32_t, 256> table{};
  for (std::size_t x = 0; x < 256; ++x) {
    table[x] = std::uint32_t{multiply(box[x], m3)} << 24 | std::uint32_t{multiply(box[x], m2)} << 16 |
               std::uint32_t{multiply(box[x], m1)} << 8 | std::uint32_t{multiply(box[x], m0)};
  }
  return table;
}

}  // namespace detail

// Bytes from low to high: 2S, S, S, 3S with S = sbox[x]; S itself is byte 1 or 2.
inline constexpr std::array<std::uint32_t, 256> te0 = detail::make_table(sbox, 0x02, 0x01, 0x01, 0x03);

// Bytes from low to high: eS, 9S, dS, bS with S = inverse_sbox[x]; the XOR of the four is S, as e^9^d^b = 1.
inline constexpr std::array<std::uint32_t, 256> td0 = detail::make_table(inverse_sbox, 0x0e, 0x09, 0x0d, 0x0b);

static_assert(te0[0x00] == 0xa56363c6u && te0[0xff] == 0x3a16162cu, "2, 1, 1, 3 times 63 and 16");
static_assert(td0[0x00] == 0x50a7f451u && td0[0x63] == 0u, "e, 9, d, b times 52 and 00");

// The schedule's words in that layout. out: 60 words, of which 4 (rounds + 1) are set; may be schedule.words.
WARPCIPHER_HD constexpr void to_column_words(const Schedule& schedule, std::uint32_t* out) {
  for (int i = 0; i < 4 * (schedule.rounds + 1); ++i) out[i] = byte_swap32(schedule.words[i]);
}

}  // namespace warpcipher::aes
