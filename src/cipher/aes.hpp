// SPDX-License-Identifier: Apache-2.0
// AES (FIPS 197), one block at a time, in constant time on host and device: the S-box is computed as logic
// over the block's bit planes, nothing is looked up. For key schedules and the odd single block (hash keys,
// tweaks, counter blocks); engines that move data have their own faster forms.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/circuits.hpp"
#include "core/bytes.hpp"

namespace warpcipher::aes {

inline constexpr std::size_t block_len = 16;

// Round keys in the order they are added: words[4 * r] to words[4 * r + 3] belong to AddRoundKey number r, 0
// to `rounds`. Words are big-endian as in FIPS 197: the first byte of a column is the most significant.
struct Schedule {
  std::uint32_t words[60];
  int rounds;
};

namespace detail {

// The sixteen bytes as eight 32-bit planes. Plane i holds bit i of the byte in row r and column c at bit
// 8(3-r) + c; bits 4 to 7 of each byte of a plane are not used:
//
//   bit   31..28  27 26 25 24  23..20  19 18 17 16  15..12  11 10  9  8   7..4   3  2  1  0
//   row           0  0  0  0           1  1  1  1           2  2  2  2           3  3  3  3
//   col           3  2  1  0           3  2  1  0           3  2  1  0           3  2  1  0
//
// A column is then a big-endian word with its bits spread, and a step of one row is a rotation by 8.
WARPCIPHER_INLINE constexpr void to_planes(std::uint32_t (&planes)[8], const std::uint32_t (&columns)[4]) {
  for (int i = 0; i < 8; ++i) {
    planes[i] = 0;
    for (int c = 0; c < 4; ++c) planes[i] |= (columns[c] >> i & 0x01010101u) << c;
  }
}

WARPCIPHER_INLINE constexpr void from_planes(std::uint32_t (&columns)[4], const std::uint32_t (&planes)[8]) {
  for (int c = 0; c < 4; ++c) {
    columns[c] = 0;
    for (int i = 0; i < 8; ++i) columns[c] |= (planes[i] >> c & 0x01010101u) << i;
  }
}

// Adds the round key `words[0..3]`.
WARPCIPHER_INLINE constexpr void add_round_key(std::uint32_t (&planes)[8], const std::uint32_t* words) {
  const std::uint32_t columns[4] = {words[0], words[1], words[2], words[3]};
  std::uint32_t key[8] = {};
  to_planes(key, columns);
  for (int i = 0; i < 8; ++i) planes[i] ^= key[i];
}

// Row r moves left by r columns (section 5.1.2), or right for the inverse. Two copies of a row side by side
// make the rotation a shift.
template <bool Inverse>
WARPCIPHER_INLINE constexpr void shift_rows(std::uint32_t (&planes)[8]) {
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t rows = planes[i] & 0x0f0f0f0fu;  // the S-box maps the unused zeros to 0x63
    const std::uint32_t twice = rows | rows << 4;
    const std::uint32_t row1 = Inverse ? twice >> 3 : twice >> 1;
    const std::uint32_t row3 = Inverse ? twice >> 1 : twice >> 3;
    planes[i] = (twice & 0x0f000000u) | (row1 & 0x000f0000u) | (twice >> 2 & 0x00000f00u) | (row3 & 0x0000000fu);
  }
}

WARPCIPHER_INLINE constexpr std::uint32_t rotate_left(std::uint32_t x, int n) { return x << n | x >> (32 - n); }

// planes += x * term, byte by byte in GF(2^8).
WARPCIPHER_INLINE constexpr void add_doubled(std::uint32_t (&planes)[8], const std::uint32_t (&term)[8]) {
  planes[0] ^= term[7];
  planes[1] ^= term[0] ^ term[7];
  planes[2] ^= term[1];
  planes[3] ^= term[2] ^ term[7];
  planes[4] ^= term[3] ^ term[7];
  for (int i = 5; i < 8; ++i) planes[i] ^= term[i - 1];
}

// Section 5.1.3: b_r = 2 (a_r + a_r+1) + a_r+1 + (a_r+2 + a_r+3).
WARPCIPHER_INLINE constexpr void mix_columns(std::uint32_t (&planes)[8]) {
  std::uint32_t pair[8] = {};
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t next = rotate_left(planes[i], 8);
    pair[i] = planes[i] ^ next;
    planes[i] = next ^ rotate_left(pair[i], 16);
  }
  add_doubled(planes, pair);
}

// Section 5.3.3. The matrix {0b,0d,09,0e} is MixColumns' matrix times {05,00,04,00}: a_r += 4 (a_r + a_r+2)
// first.
WARPCIPHER_INLINE constexpr void inverse_mix_columns(std::uint32_t (&planes)[8]) {
  std::uint32_t pair[8] = {};
  std::uint32_t doubled[8] = {};
  for (int i = 0; i < 8; ++i) pair[i] = planes[i] ^ rotate_left(planes[i], 16);
  add_doubled(doubled, pair);
  add_doubled(planes, doubled);
  mix_columns(planes);
}

// The S-box on the four bytes of a word.
WARPCIPHER_INLINE constexpr std::uint32_t sub_word(std::uint32_t word) {
  std::uint32_t bits[8] = {};
  for (int i = 0; i < 8; ++i) bits[i] = word >> i & 0x01010101u;
  circuits::aes_sbox(bits);
  std::uint32_t result = 0;
  for (int i = 0; i < 8; ++i) result |= (bits[i] & 0x01010101u) << i;
  return result;
}

WARPCIPHER_INLINE constexpr std::uint32_t inverse_mix_column(std::uint32_t word) {
  std::uint32_t planes[8] = {};
  for (int i = 0; i < 8; ++i) planes[i] = word >> i & 0x01010101u;
  inverse_mix_columns(planes);
  std::uint32_t result = 0;
  for (int i = 0; i < 8; ++i) result |= planes[i] << i;
  return result;
}

// KeyWords: 4, 6 or 8. The last KeyWords words are all that the next ones need.
template <int KeyWords, class Words>
WARPCIPHER_HD constexpr void expand_key_of(Words& words, const std::uint8_t* key) {
  std::uint32_t last[KeyWords] = {};
  for (int i = 0; i < KeyWords; ++i) last[i] = load_be32(key + 4 * i);
  for (int i = 0; i < KeyWords; i += 2) words.set_pair(i, last[i], last[i + 1]);
  constexpr int count = 4 * (KeyWords + 7);
  std::uint32_t round_constant = 0x01;
  for (int first = KeyWords; first < count; first += KeyWords) {
    last[0] ^= sub_word(rotate_left(last[KeyWords - 1], 8)) ^ round_constant << 24;
    round_constant = (round_constant << 1) ^ (0x11bu * (round_constant >> 7));
    WARPCIPHER_UNROLL
    for (int i = 1; i < KeyWords; ++i) last[i] ^= KeyWords == 8 && i == 4 ? sub_word(last[i - 1]) : last[i - 1];
    WARPCIPHER_UNROLL
    for (int i = 0; i < KeyWords; i += 2) {
      if (first + i < count) words.set_pair(first + i, last[i], last[i + 1]);
    }
  }
}

}  // namespace detail

// KeyExpansion (section 5.2) into words that may lie anywhere: `words.set_pair(i, word, next)`, big-endian words in the
// order of Schedule, i even and rising. key_len: bytes, 16, 24 or 32; the caller has checked it.
template <class Words>
WARPCIPHER_HD constexpr void expand_key_into(Words& words, const std::uint8_t* key, std::size_t key_len) {
  if (key_len == 16) return detail::expand_key_of<4>(words, key);
  if (key_len == 24) return detail::expand_key_of<6>(words, key);
  detail::expand_key_of<8>(words, key);
}

// As expand_key_into, for a schedule of this function's own.
WARPCIPHER_HD constexpr Schedule expand_key(const std::uint8_t* key, std::size_t key_len) {
  struct Words {
    Schedule& schedule;
    WARPCIPHER_HD constexpr void set_pair(int i, std::uint32_t word, std::uint32_t next) {
      schedule.words[i] = word;
      schedule.words[i + 1] = next;
    }
  };
  Schedule schedule{};
  schedule.rounds = static_cast<int>(key_len / 4) + 6;
  Words words{schedule};
  expand_key_into(words, key, key_len);
  return schedule;
}

// The schedule of the equivalent inverse cipher (section 5.3.5) in the order decryption adds it: the
// encryption schedule's rounds backwards, InvMixColumns applied to all but the first and the last.
WARPCIPHER_HD constexpr Schedule to_decryption_schedule(const Schedule& encryption) {
  Schedule schedule{};
  schedule.rounds = encryption.rounds;
  for (int r = 0; r <= encryption.rounds; ++r) {
    for (int c = 0; c < 4; ++c) {
      const std::uint32_t word = encryption.words[4 * (encryption.rounds - r) + c];
      schedule.words[4 * r + c] = r == 0 || r == encryption.rounds ? word : detail::inverse_mix_column(word);
    }
  }
  return schedule;
}

WARPCIPHER_HD constexpr Schedule expand_decryption_key(const std::uint8_t* key, std::size_t key_len) {
  return to_decryption_schedule(expand_key(key, key_len));
}

// As to_decryption_schedule, in place, of rows of four words: `rows.get(r, row)` and `rows.set(r, row)`.
template <class Rows>
WARPCIPHER_HD constexpr void turn_to_decryption(Rows& rows, int rounds) {
  for (int r = 0; 2 * r <= rounds; ++r) {
    std::uint32_t early[4] = {};
    std::uint32_t late[4] = {};
    rows.get(r, early);
    rows.get(rounds - r, late);
    WARPCIPHER_UNROLL
    for (int c = 0; r > 0 && c < 4; ++c) {
      early[c] = detail::inverse_mix_column(early[c]);
      late[c] = detail::inverse_mix_column(late[c]);
    }
    rows.set(r, late);
    rows.set(rounds - r, early);
  }
}

// Cipher (section 5.1) of a block as four big-endian columns. `rows.get(r, row)` gives the four words of AddRoundKey
// number r.
template <class Rows>
WARPCIPHER_HD constexpr void encrypt_columns(const Rows& rows, int rounds, std::uint32_t (&columns)[4]) {
  std::uint32_t planes[8] = {};
  detail::to_planes(planes, columns);
  for (int r = 0; r <= rounds; ++r) {
    if (r > 0) {
      circuits::aes_sbox(planes);
      detail::shift_rows<false>(planes);
      if (r < rounds) detail::mix_columns(planes);
    }
    std::uint32_t key[4] = {};
    rows.get(r, key);
    detail::add_round_key(planes, key);
  }
  detail::from_planes(columns, planes);
}

// Cipher (section 5.1). `schedule` comes from expand_key; in and out are 16 bytes of any alignment and may be
// the same.
WARPCIPHER_HD constexpr void encrypt_block(const Schedule& schedule, const std::uint8_t* in, std::uint8_t* out) {
  struct Rows {
    const Schedule& schedule;
    WARPCIPHER_HD constexpr void get(int r, std::uint32_t (&row)[4]) const {
      for (int c = 0; c < 4; ++c) row[c] = schedule.words[4 * r + c];
    }
  };
  std::uint32_t columns[4] = {load_be32(in), load_be32(in + 4), load_be32(in + 8), load_be32(in + 12)};
  encrypt_columns(Rows{schedule}, schedule.rounds, columns);
  for (int c = 0; c < 4; ++c) store_be32(out + 4 * c, columns[c]);
}

// EqInvCipher (section 5.3.5). `schedule` comes from expand_decryption_key; in and out as for encrypt_block.
WARPCIPHER_HD constexpr void decrypt_block(const Schedule& schedule, const std::uint8_t* in, std::uint8_t* out) {
  std::uint32_t columns[4] = {load_be32(in), load_be32(in + 4), load_be32(in + 8), load_be32(in + 12)};
  std::uint32_t planes[8] = {};
  detail::to_planes(planes, columns);
  detail::add_round_key(planes, schedule.words);
  for (int r = 1; r <= schedule.rounds; ++r) {
    circuits::aes_inverse_sbox(planes);
    detail::shift_rows<true>(planes);
    if (r < schedule.rounds) detail::inverse_mix_columns(planes);
    detail::add_round_key(planes, schedule.words + 4 * r);
  }
  detail::from_planes(columns, planes);
  for (int c = 0; c < 4; ++c) store_be32(out + 4 * c, columns[c]);
}

}  // namespace warpcipher::aes
