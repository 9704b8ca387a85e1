// SPDX-License-Identifier: Apache-2.0
// DES (FIPS 46-3) and triple DES (SP 800-67) as the standards write them, table by table: the oracle that the
// bitsliced form is tested against. Not constant time: the addresses it reads depend on key and data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/bytes.hpp"

namespace warpcipher::des {

// The tables of the Data Encryption Standard as FIPS 46-3 prints them: bits are numbered from 1, the most
// significant bit of the first byte. Everything about DES, plain or bitsliced, is derived from these.

// IP and its inverse: output bit i is input bit table[i - 1].
inline constexpr std::array<std::uint8_t, 64> initial_permutation{
    58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4,  //
    62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48, 40, 32, 24, 16, 8,  //
    57, 49, 41, 33, 25, 17, 9,  1, 59, 51, 43, 35, 27, 19, 11, 3,  //
    61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7};

inline constexpr std::array<std::uint8_t, 64> final_permutation{
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31,  //
    38, 6, 46, 14, 54, 22, 62, 30, 37, 5, 45, 13, 53, 21, 61, 29,  //
    36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,  //
    34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9,  49, 17, 57, 25};

// E: 32 bits to 48, six for each S-box.
inline constexpr std::array<std::uint8_t, 48> expansion{
    32, 1,  2,  3,  4,  5,  4,  5,  6,  7,  8,  9,  8,  9,  10, 11, 12, 13, 12, 13, 14, 15, 16, 17,  //
    16, 17, 18, 19, 20, 21, 20, 21, 22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1};

// P: the 32 S-box output bits to the output of f.
inline constexpr std::array<std::uint8_t, 32> round_permutation{
    16, 7, 20, 21, 29, 12, 28, 17, 1,  15, 23, 26, 5,  18, 31, 10,  //
    2,  8, 24, 14, 32, 27, 3,  9,  19, 13, 30, 6,  22, 11, 4,  25};

// PC-1: the 64 key bits, parity bits 8, 16, ... 64 left out, to C (28 bits) and D (28 bits).
inline constexpr std::array<std::uint8_t, 56> permuted_choice_1{
    57, 49, 41, 33, 25, 17, 9,  1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4};

// PC-2: C and D, 56 bits, to a subkey of 48.
inline constexpr std::array<std::uint8_t, 48> permuted_choice_2{
    14, 17, 11, 24, 1,  5,  3,  28, 15, 6,  21, 10, 23, 19, 12, 4,  26, 8,  16, 7,  27, 20, 13, 2,  //
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32};

// How many places C and D rotate left before each round's subkey is taken.
inline constexpr std::array<std::uint8_t, 16> key_rotations{1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1};

// S1 to S8: row is the first and the last input bit, column the four between.
inline constexpr std::uint8_t sboxes[8][4][16] = {{{14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7},
                                                   {0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8},
                                                   {4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0},
                                                   {15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13}},
                                                  {{15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10},
                                                   {3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5},
                                                   {0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15},
                                                   {13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9}},
                                                  {{10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8},
                                                   {13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1},
                                                   {13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7},
                                                   {1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12}},
                                                  {{7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15},
                                                   {13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9},
                                                   {10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4},
                                                   {3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14}},
                                                  {{2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9},
                                                   {14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6},
                                                   {4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14},
                                                   {11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3}},
                                                  {{12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11},
                                                   {10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8},
                                                   {9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6},
                                                   {4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13}},
                                                  {{4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1},
                                                   {13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6},
                                                   {1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2},
                                                   {6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12}},
                                                  {{13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7},
                                                   {1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2},
                                                   {7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8},
                                                   {2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11}}};

inline constexpr std::size_t block_len = 8;

namespace reference {

// Subkeys of the up to three DES passes of encryption, in order; 48 bits each, the first bit most significant.
struct Schedule {
  std::uint64_t subkeys[3][16];
  int passes;  // 1: DES. 3: triple DES, where the middle pass decrypts and its subkeys are stored backwards.
};

namespace detail {

// Bits table[0], table[1], ... of `input`, which has input_bits bits, numbered from 1 at the most significant.
template <std::size_t N>
constexpr std::uint64_t permute(std::uint64_t input, unsigned input_bits, const std::array<std::uint8_t, N>& table) {
  std::uint64_t output = 0;
  for (const std::uint8_t bit : table) output = output << 1 | (input >> (input_bits - bit) & 1u);
  return output;
}

constexpr std::uint32_t rotate_left28(std::uint32_t x, unsigned n) { return (x << n | x >> (28 - n)) & 0x0fffffffu; }

// KS: C and D rotate, PC-2 picks.
constexpr void expand_one(std::uint64_t (&subkeys)[16], std::uint64_t key, bool backwards) {
  const std::uint64_t cd = permute(key, 64, permuted_choice_1);
  auto c = static_cast<std::uint32_t>(cd >> 28);
  auto d = static_cast<std::uint32_t>(cd & 0x0fffffffu);
  for (std::size_t r = 0; r < 16; ++r) {
    c = rotate_left28(c, key_rotations[r]);
    d = rotate_left28(d, key_rotations[r]);
    subkeys[backwards ? 15 - r : r] = permute(std::uint64_t{c} << 28 | d, 56, permuted_choice_2);
  }
}

// f(R, K): expand, add the subkey, substitute, permute.
constexpr std::uint32_t round_function(std::uint32_t right, std::uint64_t subkey) {
  const std::uint64_t mixed = permute(right, 32, expansion) ^ subkey;
  std::uint32_t substituted = 0;
  for (unsigned s = 0; s < 8; ++s) {
    const unsigned six = static_cast<unsigned>(mixed >> (42 - 6 * s)) & 0x3fu;
    const unsigned row = (six >> 4 & 2u) | (six & 1u);
    substituted = substituted << 4 | sboxes[s][row][six >> 1 & 0xfu];
  }
  return static_cast<std::uint32_t>(permute(substituted, 32, round_permutation));
}

// Sixteen rounds with the subkeys in the order given, or backwards.
constexpr std::uint64_t transform(std::uint64_t block, const std::uint64_t (&subkeys)[16], bool backwards) {
  const std::uint64_t start = permute(block, 64, initial_permutation);
  auto left = static_cast<std::uint32_t>(start >> 32);
  auto right = static_cast<std::uint32_t>(start);
  for (std::size_t r = 0; r < 16; ++r) {
    const std::uint32_t next = left ^ round_function(right, subkeys[backwards ? 15 - r : r]);
    left = right;
    right = next;
  }
  return permute(std::uint64_t{right} << 32 | left, 64, final_permutation);
}

}  // namespace detail

// key_len: bytes; 8 is DES, 16 triple DES with K3 = K1, 24 triple DES with three keys. Checked by the caller.
// Parity bits are ignored.
constexpr Schedule expand_key(const std::uint8_t* key, std::size_t key_len) {
  Schedule schedule{};
  schedule.passes = key_len == 8 ? 1 : 3;
  for (std::size_t pass = 0; pass < static_cast<std::size_t>(schedule.passes); ++pass) {
    detail::expand_one(schedule.subkeys[pass], load_be64(key + 8 * pass % key_len), pass == 1);
  }
  return schedule;
}

// in and out are 8 bytes and may be the same.
constexpr void encrypt_block(const Schedule& schedule, const std::uint8_t* in, std::uint8_t* out) {
  std::uint64_t block = load_be64(in);
  for (int pass = 0; pass < schedule.passes; ++pass) {
    block = detail::transform(block, schedule.subkeys[pass], false);
  }
  store_be64(out, block);
}

// in and out are 8 bytes and may be the same.
constexpr void decrypt_block(const Schedule& schedule, const std::uint8_t* in, std::uint8_t* out) {
  std::uint64_t block = load_be64(in);
  for (int pass = schedule.passes - 1; pass >= 0; --pass) {
    block = detail::transform(block, schedule.subkeys[pass], true);
  }
  store_be64(out, block);
}

}  // namespace reference

namespace detail {

constexpr std::uint64_t encrypt_once(std::uint64_t key, std::uint64_t plaintext) {
  std::uint64_t subkeys[16] = {};
  reference::detail::expand_one(subkeys, key, false);
  return reference::detail::transform(plaintext, subkeys, false);
}

static_assert(encrypt_once(0x0101010101010101u, 0x8000000000000000u) == 0x95f8a5e5dd31d900u,
              "SP 800-17, appendix B, table 1, first variable plaintext");
static_assert(encrypt_once(0x8001010101010101u, 0) == 0x95a8d72813daa94du,
              "SP 800-17, appendix B, table 2, first variable key");

}  // namespace detail

}  // namespace warpcipher::des
