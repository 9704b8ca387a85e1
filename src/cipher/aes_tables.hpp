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
#include "cipher/aes_sbox.hpp"

namespace warpcipher::aes {

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
