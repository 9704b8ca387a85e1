// SPDX-License-Identifier: Apache-2.0
// The four T-boxes of the papers, and AES by them on one CPU thread, with which the papers compare their GPUs.
//
// Timing: lookups in the CPU's cache take a time that depends on keys and data. Not constant time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "cipher/aes_tables.hpp"
#include "core/wipe.hpp"
#include "lab.hpp"

namespace warpcipher::lab {

// T-box r is row r's contribution to its column, in the layout of cipher/aes_tables.hpp.
using Tables = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Tables make_tables(const std::array<std::uint32_t, 256>& first) {
  Tables tables{};
  for (std::size_t x = 0; x < 256; ++x) {
    std::uint32_t word = first[x];
    for (std::size_t r = 0; r < 4; ++r) {
      tables[r][x] = word;
      word = word << 8 | word >> 24;
    }
  }
  return tables;
}

inline constexpr Tables encryption_tables = make_tables(aes::te0);
inline constexpr Tables decryption_tables = make_tables(aes::td0);

// Round keys as columns, in the order they are added. Wiped by its owner.
struct RoundKeys {
  std::uint32_t words[60];
  int rounds;
};

// key: 16, 24 or 32 bytes. Of decryption: the keys of the equivalent inverse cipher (FIPS 197, section 5.3.5).
inline Secret<RoundKeys> expand_key(std::span<const std::uint8_t> key, bool decrypt = false) {
  const Secret schedule(decrypt ? aes::expand_decryption_key(key.data(), key.size())
                                : aes::expand_key(key.data(), key.size()));
  Secret<RoundKeys> keys;
  aes::to_column_words(*schedule, keys->words);
  keys->rounds = schedule->rounds;
  return keys;
}

namespace detail {

// Tables and the S-box of one direction. Step: columns from one row to the next, 1 for ShiftRows, 3 for its inverse.
template <unsigned Step>
inline void table_block(const RoundKeys& keys, const Tables& tables, const std::array<std::uint8_t, 256>& sbox,
                        const std::uint8_t* in, std::uint8_t* out) {
  std::uint32_t s[4];
  std::uint32_t t[4];
  std::memcpy(s, in, 16);
  const std::uint32_t* key = keys.words;
  for (unsigned c = 0; c < 4; ++c) s[c] ^= *key++;
  for (int round = 1; round < keys.rounds; ++round) {
    for (unsigned c = 0; c < 4; ++c) {
      t[c] = tables[0][s[c] & 0xff] ^ tables[1][s[(c + Step) % 4] >> 8 & 0xff] ^
             tables[2][s[(c + 2) % 4] >> 16 & 0xff] ^ tables[3][s[(c + 3 * Step) % 4] >> 24] ^ *key++;
    }
    std::memcpy(s, t, 16);
  }
  for (unsigned c = 0; c < 4; ++c) {
    t[c] = std::uint32_t{sbox[s[c] & 0xff]} ^ std::uint32_t{sbox[s[(c + Step) % 4] >> 8 & 0xff]} << 8 ^
           std::uint32_t{sbox[s[(c + 2) % 4] >> 16 & 0xff]} << 16 ^
           std::uint32_t{sbox[s[(c + 3 * Step) % 4] >> 24]} << 24 ^ *key++;
  }
  std::memcpy(out, t, 16);
}

}  // namespace detail

// in and out: 16 bytes, which may be the same. keys: of that direction.
inline void encrypt_block(const RoundKeys& keys, const std::uint8_t* in, std::uint8_t* out) {
  detail::table_block<1>(keys, encryption_tables, aes::sbox, in, out);
}

inline void decrypt_block(const RoundKeys& keys, const std::uint8_t* in, std::uint8_t* out) {
  detail::table_block<3>(keys, decryption_tables, aes::inverse_sbox, in, out);
}

// Round keys of AES-128 in ECB.
template <bool Decrypt>
Secret<RoundKeys> ecb_keys(const Setting& setting) {
  check_len("key", setting.key.size(), {16});
  check_len("iv", setting.iv.size(), {0});
  return expand_key(setting.key, Decrypt);
}

// AES-128 in ECB on one CPU thread.
template <bool Decrypt>
std::unique_ptr<Job> one_thread_ecb(const Setting& setting) {
  return host_job([keys = ecb_keys<Decrypt>(setting)](const Data& data) {
    check_blocks(data);
    for (std::size_t i = 0; i < data.in_len; i += 16) {
      (Decrypt ? decrypt_block : encrypt_block)(*keys, data.in + i, data.out + i);
    }
  });
}

}  // namespace warpcipher::lab
