// SPDX-License-Identifier: Apache-2.0
// Bitsliced AES (FIPS 197), eight blocks in 32 words, as three-input logic: nothing is looked up. For counters that
// differ only in the last byte it begins after the second round (CommonRounds of the lane tables). Decryption is the
// equivalent inverse cipher (section 5.3.5), whose round keys have been through InvMixColumns.
//
//   rows[r][i]     bit i of the bytes of row r of the state:   byte c of the word: column c,  bit j of that: block j
//
//   bits           31 ... 24      23 ... 16      15 ... 8       7 ... 0
//   column         3              2              1              0
//   block          7 ... 0        7 ... 0        7 ... 0        7 ... 0
//
// So SubBytes is the S-box's circuit for each of four rows, and ShiftRows a rotation of the words of a row.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cipher/aes_tables.hpp"
#include "cipher/circuits.hpp"

namespace warpcipher::aes {

// Four of the eight bytes b:a, picked by the nibbles of Selector; a nibble's high bit asks for eight times the sign of
// its byte instead (PRMT).
template <std::uint32_t Selector>
WARPCIPHER_INLINE constexpr std::uint32_t pick_bytes(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint32_t d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "n"(Selector));
    return d;
  }
#endif
  std::uint32_t picked = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t nibble = Selector >> (4 * i) & 15;
    std::uint32_t byte = ((nibble & 4) != 0 ? b : a) >> (8 * (nibble & 3)) & 0xff;
    if ((nibble & 8) != 0) byte = byte >= 0x80 ? 0xff : 0;
    picked |= byte << (8 * i);
  }
  return picked;
}

// AddRoundKey as MixColumns takes it in (Slices::mix_columns): masks of all blocks, words as in Slices.
struct RowMasks {
  std::uint32_t rows[4];
};

struct SlicedKey {
  std::uint32_t rows[4][8];

  WARPCIPHER_INLINE constexpr RowMasks of_bit(int i) const { return {{rows[0][i], rows[1][i], rows[2][i], rows[3][i]}}; }
};

// MixColumns adds each sum of neighbouring rows t_r = a_r ^ a_{r+1} to two rows: out_r = 2 t_r ^ a_{r+1} ^ t_{r+2}. A
// key k is added at no cost if t_r includes m_r with 2 m_r ^ m_{r+2} = k_r, that is m_r = (2 k_r ^ k_{r+2}) / 5.
// key: the 16 bytes of a round key.
constexpr SlicedKey slice_key(const std::uint8_t* key) {
  constexpr std::uint8_t fifth = detail::invert(5);
  SlicedKey sliced{};
  for (unsigned r = 0; r < 4; ++r) {
    for (unsigned c = 0; c < 4; ++c) {
      const auto sum = static_cast<std::uint8_t>(multiply(2, key[4 * c + r]) ^ key[4 * c + (r + 2) % 4]);
      const std::uint8_t m = multiply(fifth, sum);
      for (unsigned i = 0; i < 8; ++i) sliced.rows[r][i] |= (m >> i & 1u) * 0xffu << (8 * c);
    }
  }
  return sliced;
}

// The same masks one by one, as a kernel makes them. Bit i of m_r is linear in k_r and k_{r+2}: the parity of their
// bits that MaskBits has, in each byte.
struct MaskBits {
  std::uint32_t own;
  std::uint32_t other;
};

namespace detail {

// Byte i: the bits of a byte whose parity is bit i of the byte times `factor`.
constexpr std::uint64_t parities(std::uint8_t factor) {
  std::uint64_t bits = 0;
  for (unsigned j = 0; j < 8; ++j) {
    const std::uint8_t product = multiply(factor, static_cast<std::uint8_t>(1u << j));
    for (unsigned i = 0; i < 8; ++i) bits |= std::uint64_t{product >> i & 1u} << (8 * i + j);
  }
  return bits;
}

}  // namespace detail

WARPCIPHER_INLINE constexpr MaskBits mask_bits(unsigned i) {
  constexpr std::uint64_t own = detail::parities(multiply(2, detail::invert(5)));
  constexpr std::uint64_t other = detail::parities(detail::invert(5));
  return {static_cast<std::uint32_t>(own >> (8 * i) & 0xff) * 0x01010101u,
          static_cast<std::uint32_t>(other >> (8 * i) & 0xff) * 0x01010101u};
}

// own, other: rows r and r + 2 of a round key, byte c of column c. Word [r][i] of SlicedKey.
WARPCIPHER_INLINE constexpr std::uint32_t make_mask(std::uint32_t own, std::uint32_t other, const MaskBits& bits) {
  std::uint32_t x = (own & bits.own) ^ (other & bits.other);
  x ^= x >> 4;
  x ^= x >> 2;
  x ^= x >> 1;
  return (x & 0x01010101u) * 0xff;
}

namespace detail {

template <unsigned Shift, std::uint32_t Mask>
WARPCIPHER_INLINE constexpr void swap_bits(std::uint32_t& a, std::uint32_t& b) {
  const std::uint32_t low = lut3<0xb8>(b << Shift, Mask, a);  // a where Mask, else b moved up
  b = lut3<0xb8>(b, Mask, a >> Shift);
  a = low;
}

}  // namespace detail

// Bit i of byte r of words[j] and bit j of byte r of words[i] change places.
WARPCIPHER_INLINE constexpr void transpose_bits(std::uint32_t (&words)[8]) {
  WARPCIPHER_UNROLL
  for (unsigned i = 0; i < 4; ++i) detail::swap_bits<4, 0x0f0f0f0f>(words[i], words[i + 4]);
  WARPCIPHER_UNROLL
  for (unsigned i = 0; i < 4; ++i)
    detail::swap_bits<2, 0x33333333>(words[i / 2 * 4 + i % 2], words[i / 2 * 4 + i % 2 + 2]);
  WARPCIPHER_UNROLL
  for (unsigned i = 0; i < 4; ++i) detail::swap_bits<1, 0x55555555>(words[2 * i], words[2 * i + 1]);
}

struct Slices {
  std::uint32_t rows[4][8];

  // words[c][j]: column c of block j, its bytes in memory's order. They are not kept.
  static WARPCIPHER_INLINE constexpr Slices of_columns(std::uint32_t (&words)[4][8]) {
    WARPCIPHER_UNROLL
    for (unsigned c = 0; c < 4; ++c) transpose_bits(words[c]);
    Slices state{};
    WARPCIPHER_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      const std::uint32_t column[4] = {words[0][i], words[1][i], words[2][i], words[3][i]};
      std::uint32_t row[4] = {};
      transpose_bytes(column, row);
      WARPCIPHER_UNROLL
      for (unsigned r = 0; r < 4; ++r) state.rows[r][i] = row[r];
    }
    return state;
  }

  template <bool Inverse = false>
  WARPCIPHER_INLINE constexpr void sub_bytes() {
    WARPCIPHER_UNROLL
    for (int r = 0; r < 4; ++r) {
      if constexpr (Inverse) {
        circuits::aes_inverse_sbox(rows[r]);
      } else {
        circuits::aes_sbox(rows[r]);
      }
    }
  }

  // ShiftRows, MixColumns and AddRoundKey, or their inverses. InvMixColumns is MixColumns after another, sparser
  // matrix, which adds 4 (a_r ^ a_{r+2}) to each a_r: 50 operations more.
  // Key: a SlicedKey, or another type with of_bit().
  template <bool Inverse = false, class Key>
  WARPCIPHER_INLINE constexpr void mix_columns(const Key& key) {
    std::uint32_t sums[4][8] = {};
    WARPCIPHER_UNROLL
    for (int i = 0; i < 8; ++i) {
      rows[1][i] = pick_bytes < Inverse ? 0x2103 : 0x0321 > (rows[1][i], 0);
      rows[2][i] = pick_bytes<0x1032>(rows[2][i], 0);
      rows[3][i] = pick_bytes < Inverse ? 0x0321 : 0x2103 > (rows[3][i], 0);
    }
    if constexpr (Inverse) {
      add_fourfold(rows[0], rows[2]);
      add_fourfold(rows[1], rows[3]);
    }
    WARPCIPHER_UNROLL
    for (int i = 0; i < 8; ++i) {
      const RowMasks masks = key.of_bit(i);
      WARPCIPHER_UNROLL
      for (int r = 0; r < 4; ++r) sums[r][i] = lut3<0x96>(rows[r][i], rows[(r + 1) % 4][i], masks.rows[r]);
    }
    WARPCIPHER_UNROLL
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t first = rows[0][i];
      WARPCIPHER_UNROLL
      for (int r = 0; r < 4; ++r) {
        const std::uint32_t next = r == 3 ? first : rows[r + 1][i];
        rows[r][i] = lut3<0x96>(sums[r][(i + 7) % 8], next, sums[(r + 2) % 4][i]);
        if (i == 1 || i == 3 || i == 4) rows[r][i] ^= sums[r][7];
      }
    }
  }

  // ShiftRows or its inverse, then column c of the blocks: words[j] of block j, its bytes in memory's order.
  template <unsigned Column, bool Inverse = false>
  WARPCIPHER_INLINE constexpr void get_column(std::uint32_t (&words)[8]) const {
    // Row 0 or 2 from columns 0 and 1, the row after it from 1 and 2, or from 3 and 0.
    constexpr std::uint32_t from_start = Inverse ? 0x4170 : 0x6150;
    constexpr std::uint32_t from_middle = Inverse ? 0x6352 : 0x4372;  // two columns further
    WARPCIPHER_UNROLL
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t upper = pick_bytes < Column / 2 == 0 ? from_start : from_middle > (rows[0][i], rows[1][i]);
      const std::uint32_t lower = pick_bytes < Column / 2 == 0 ? from_middle : from_start > (rows[2][i], rows[3][i]);
      words[i] = pick_bytes < Column % 2 == 0 ? 0x5410 : 0x7632 > (upper, lower);
    }
    transpose_bits(words);
  }

  // The state after round 2 of eight blocks that differ only in byte 15. ShiftRows brings row r of column 0 of round 1
  // to column -r of round 2; nothing else of a column differs between the blocks.
  //   entries        byte 15's part of column 0 of round 1: sliced by slice_entries
  //   first_column   the rest of that column
  //   second         the columns of round 2 without column 0's part
  static WARPCIPHER_INLINE constexpr Slices after_common(const std::uint32_t (&entries)[8], std::uint32_t first_column,
                                             const std::uint32_t (&second)[4]) {
    std::uint32_t z[8] = {};
    WARPCIPHER_UNROLL
    for (unsigned i = 0; i < 8; ++i) z[i] = entries[i] ^ pick_bytes<0x9ab8>(first_column << (7 - i), 0);
    circuits::aes_sbox(z);
    const std::uint32_t twice[8] = {z[7], z[0] ^ z[7], z[1], z[2] ^ z[7], z[3] ^ z[7], z[4], z[5], z[6]};
    // Byte c of the words is row -c of column 0.
    constexpr std::uint32_t of_row[4] = {0xff, 0xff000000, 0xff0000, 0xff00};
    std::uint32_t rest[4] = {};
    transpose_bytes(second, rest);
    Slices state{};
    WARPCIPHER_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      WARPCIPHER_UNROLL
      for (unsigned i = 0; i < 8; ++i) {
        const std::uint32_t same = pick_bytes<0xba98>(rest[r] << (7 - i), 0);
        const std::uint32_t once = lut3<0x78>(same, z[i], ~of_row[r]);
        state.rows[r][i] = lut3<0x78>(once, twice[i], of_row[r] | of_row[(r + 1) % 4]);
      }
    }
    return state;
  }

  // words[j]: of block j; then as after_common takes them.
  static WARPCIPHER_INLINE constexpr void slice_entries(std::uint32_t (&words)[8]) {
    transpose_bits(words);
    WARPCIPHER_UNROLL
    for (int i = 0; i < 8; ++i) words[i] = pick_bytes<0x1230>(words[i], 0);
  }

 private:
  // Byte c of rows[r] is byte r of columns[c].
  static WARPCIPHER_INLINE constexpr void transpose_bytes(const std::uint32_t (&columns)[4], std::uint32_t (&row)[4]) {
    const std::uint32_t rows01[2] = {pick_bytes<0x5140>(columns[0], columns[1]),
                                     pick_bytes<0x5140>(columns[2], columns[3])};
    const std::uint32_t rows23[2] = {pick_bytes<0x7362>(columns[0], columns[1]),
                                     pick_bytes<0x7362>(columns[2], columns[3])};
    row[0] = pick_bytes<0x5410>(rows01[0], rows01[1]);
    row[1] = pick_bytes<0x7632>(rows01[0], rows01[1]);
    row[2] = pick_bytes<0x5410>(rows23[0], rows23[1]);
    row[3] = pick_bytes<0x7632>(rows23[0], rows23[1]);
  }

  // Adds x^2 (a ^ b) to a and to b.
  static WARPCIPHER_INLINE constexpr void add_fourfold(std::uint32_t (&a)[8], std::uint32_t (&b)[8]) {
    std::uint32_t s[8] = {};
    WARPCIPHER_UNROLL
    for (int i = 0; i < 8; ++i) s[i] = a[i] ^ b[i];
    const std::uint32_t leaving = s[6] ^ s[7];
    const std::uint32_t first[8] = {s[6], s[6], s[0], s[1], s[2], s[3], s[4], s[5]};
    const std::uint32_t second[8] = {0, s[7], s[7], s[6], leaving, s[7], 0, 0};
    WARPCIPHER_UNROLL
    for (int i = 0; i < 8; ++i) {
      a[i] = lut3<0x96>(a[i], first[i], second[i]);
      b[i] = lut3<0x96>(b[i], first[i], second[i]);
    }
  }
};

}  // namespace warpcipher::aes
