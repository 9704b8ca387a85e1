// SPDX-License-Identifier: Apache-2.0
// AES as FIPS 197 writes it, byte by byte, with the S-box as a table: the oracle that every other form is
// tested against. Not constant time: the addresses it reads depend on key and data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/aes_tables.hpp"

namespace warpcipher::aes::reference {

// Round keys as bytes: bytes[16 * r] starts round r.
struct Schedule {
  std::uint8_t bytes[240];
  int rounds;
};

// KeyExpansion (section 5.2). key_len: bytes, 16, 24 or 32, checked by the caller.
constexpr Schedule expand_key(const std::uint8_t* key, std::size_t key_len) {
  Schedule schedule{};
  schedule.rounds = static_cast<int>(key_len / 4) + 6;
  for (std::size_t i = 0; i < key_len; ++i) schedule.bytes[i] = key[i];
  std::uint8_t round_constant = 0x01;
  for (std::size_t i = key_len; i < 16 * (static_cast<std::size_t>(schedule.rounds) + 1); i += 4) {
    const std::uint8_t* last = schedule.bytes + i - 4;
    std::uint8_t temp[4] = {last[0], last[1], last[2], last[3]};
    if (i % key_len == 0) {
      const std::uint8_t first = temp[0];  // RotWord, SubWord, Rcon
      temp[0] = static_cast<std::uint8_t>(sbox[temp[1]] ^ round_constant);
      temp[1] = sbox[temp[2]];
      temp[2] = sbox[temp[3]];
      temp[3] = sbox[first];
      round_constant = multiply(round_constant, 0x02);
    } else if (key_len == 32 && i % key_len == 16) {
      for (std::uint8_t& byte : temp) byte = sbox[byte];
    }
    for (std::size_t k = 0; k < 4; ++k) {
      schedule.bytes[i + k] = static_cast<std::uint8_t>(schedule.bytes[i + k - key_len] ^ temp[k]);
    }
  }
  return schedule;
}

namespace detail {

// state[r + 4 * c] is the byte in row r and column c (section 3.4).
constexpr void add_round_key(std::uint8_t (&state)[16], const Schedule& schedule, int round) {
  for (int i = 0; i < 16; ++i) state[i] = static_cast<std::uint8_t>(state[i] ^ schedule.bytes[16 * round + i]);
}

constexpr void substitute(std::uint8_t (&state)[16], const std::array<std::uint8_t, 256>& box) {
  for (std::uint8_t& byte : state) byte = box[byte];
}

// Row r moves left by r * step columns modulo 4: step 1 for ShiftRows, 3 for InvShiftRows.
constexpr void shift_rows(std::uint8_t (&state)[16], int step) {
  std::uint8_t old[16] = {};
  for (int i = 0; i < 16; ++i) old[i] = state[i];
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) state[r + 4 * c] = old[r + 4 * ((c + r * step) % 4)];
  }
}

// Each column times the circulant matrix whose first row is m: {2,3,1,1} or, inverse, {e,b,d,9}.
constexpr void mix_columns(std::uint8_t (&state)[16], const std::uint8_t (&m)[4]) {
  for (int c = 0; c < 4; ++c) {
    std::uint8_t column[4] = {};
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < 4; ++k) {
        column[r] = static_cast<std::uint8_t>(column[r] ^ multiply(m[(k - r + 4) % 4], state[k + 4 * c]));
      }
    }
    for (int r = 0; r < 4; ++r) state[r + 4 * c] = column[r];
  }
}

}  // namespace detail

// Cipher (section 5.1). in and out are 16 bytes and may be the same.
constexpr void encrypt_block(const Schedule& schedule, const std::uint8_t* in, std::uint8_t* out) {
  std::uint8_t state[16] = {};
  for (int i = 0; i < 16; ++i) state[i] = in[i];
  detail::add_round_key(state, schedule, 0);
  for (int round = 1; round <= schedule.rounds; ++round) {
    detail::substitute(state, sbox);
    detail::shift_rows(state, 1);
    if (round < schedule.rounds) detail::mix_columns(state, {0x02, 0x03, 0x01, 0x01});
    detail::add_round_key(state, schedule, round);
  }
  for (int i = 0; i < 16; ++i) out[i] = state[i];
}

// InvCipher (section 5.3), with the same schedule. in and out are 16 bytes and may be the same.
constexpr void decrypt_block(const Schedule& schedule, const std::uint8_t* in, std::uint8_t* out) {
  std::uint8_t state[16] = {};
  for (int i = 0; i < 16; ++i) state[i] = in[i];
  detail::add_round_key(state, schedule, schedule.rounds);
  for (int round = schedule.rounds - 1; round >= 0; --round) {
    detail::shift_rows(state, 3);
    detail::substitute(state, inverse_sbox);
    detail::add_round_key(state, schedule, round);
    if (round > 0) detail::mix_columns(state, {0x0e, 0x0b, 0x0d, 0x09});
  }
  for (int i = 0; i < 16; ++i) out[i] = state[i];
}

}  // namespace warpcipher::aes::reference
