// SPDX-License-Identifier: Apache-2.0
// DES (FIPS 46-3) and triple DES (SP 800-67) as the standards write them, table by table: the oracle that the
// bitsliced form is tested against. Not constant time: the addresses it reads depend on key and data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/des_tables.hpp"
#include "core/bytes.hpp"

namespace warpcipher::des {

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
