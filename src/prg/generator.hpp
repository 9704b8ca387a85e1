// SPDX-License-Identifier: Apache-2.0
// Pseudorandom generators of 16 bytes to some times 16, for trees and point functions: the mathematics, for host and
// device. A seed's child number i is
//
//   aes-128-mmo     E(K_i, sigma(seed)) ^ sigma(seed), with sigma(L || R) = L ^ R || L and keys that everybody knows:
//   C.
//                   Guo, J. Katz, X. Wang, Y. Yu, "Efficient and Secure Multiparty Computation from Fixed-Key Block
//                   Ciphers" (2020). Blocks are little-endian: L is bytes 8 to 15
//   aes-128-keyed   E(seed, i): key stream of AES-128-CTR from the counter 0, big-endian
//   chacha20, 12, 8 bytes 16 i to 16 i + 15 of the block of that key, counter 0 and nonce 0, in the form for keys of 16
//                   bytes: "expand 16-byte k", then the key twice (D. J. Bernstein, "ChaCha, a variant of Salsa20")
//   aes-128-half    0: H(seed) = aes-128-mmo's child 0; 1: seed ^ H(seed); 2, 3: as aes-128-mmo. Correlated trees
//                   of X. Guo, K. Yang, X. Wang, W. Zhang, X. Xie, J. Zhang, Z. Liu, "Half-Tree: Halving the Cost of
//                   Tree Expansion in COT and DPF" (2023): half the work, and no generator by itself
//
// All in constant time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/aes.hpp"
#include "cipher/chacha.hpp"
#include "core/host_device.hpp"

namespace warpcipher::prg {

enum class Generator : std::uint8_t { aes128_mmo, aes128_keyed, chacha20, chacha12, chacha8, aes128_half };

inline constexpr std::size_t block_len = 16;
inline constexpr int most_children = 4;
inline constexpr int aes_rounds = 10;

// Whether the children of a seed add up to it.
WARPCIPHER_HD constexpr bool is_correlated(Generator generator) {
  return generator == Generator::aes128_half;
}

constexpr bool is_aes(Generator generator) { return generator <= Generator::aes128_keyed || is_correlated(generator); }

constexpr int double_rounds_of(Generator generator) {
  return generator == Generator::chacha20 ? 10 : generator == Generator::chacha12 ? 6 : 4;
}

// K_0, K_1 and K_2 are from Google's distributed_point_functions: left, right, value. K_3: the first half of
// SHA-256 of "warpcipher.prg aes-128-mmo 3".
inline constexpr std::uint8_t fixed_keys[most_children][block_len] = {
    {0xfd, 0xa2, 0xb6, 0xa5, 0xd0, 0x08, 0x5f, 0x93, 0xe5, 0x3d, 0xa0, 0xf6, 0xcc, 0x37, 0xe0, 0x5b},
    {0x0b, 0x4d, 0x6f, 0xf6, 0xe0, 0x1f, 0xea, 0xe2, 0x6c, 0x02, 0xbb, 0xde, 0xae, 0xb6, 0x94, 0xef},
    {0x98, 0x1c, 0x1d, 0xb2, 0x01, 0x11, 0xa3, 0x46, 0xe3, 0x23, 0x54, 0x8c, 0x58, 0xd1, 0xa5, 0x05},
    {0xb8, 0x8e, 0xae, 0x17, 0xd2, 0xca, 0xa0, 0x69, 0xfe, 0x55, 0x58, 0xef, 0xa1, 0xbd, 0xa9, 0xcc}};

// The schedules of the fixed keys, as words that a little-endian machine loads: word w of round r is words[4 r + w].
struct FixedSchedules {
  std::uint32_t words[most_children][4 * (aes_rounds + 1)];
};

constexpr FixedSchedules make_fixed_schedules() {
  FixedSchedules made{};
  for (int k = 0; k < most_children; ++k) {
    const aes::Schedule schedule = aes::expand_key(fixed_keys[k], block_len);
    for (int i = 0; i < 4 * (aes_rounds + 1); ++i) made.words[k][i] = byte_swap32(schedule.words[i]);
  }
  return made;
}
inline constexpr FixedSchedules fixed_schedules = make_fixed_schedules();

// The first row of the state: "expand 16-byte k".
WARPCIPHER_INLINE constexpr std::uint32_t chacha_row(int i) {
  constexpr std::uint32_t words[4] = {0x61707865, 0x3120646e, 0x79622d36, 0x6b206574};
  return words[i];
}

// ChaCha's block of a seed, both as words that a little-endian machine loads.
WARPCIPHER_INLINE constexpr void chacha_block(const std::uint32_t (&seed)[4], int double_rounds, std::uint32_t (&x)[16]) {
  WARPCIPHER_UNROLL
  for (int i = 0; i < 4; ++i) {
    x[i] = chacha_row(i);
    x[4 + i] = x[8 + i] = seed[i];
    x[12 + i] = 0;
  }
  WARPCIPHER_UNROLL
  for (int i = 0; i < double_rounds; ++i) chacha::double_round(x);
  WARPCIPHER_UNROLL
  for (int i = 0; i < 4; ++i) {
    x[i] += chacha_row(i);
    x[4 + i] += seed[i];
    x[8 + i] += seed[i];
  }
}

// Child number i of a seed, as the definition says. out: another place than `seed`.
inline void make_child(Generator generator, const std::uint8_t* seed, int i, std::uint8_t* out) {
  if (generator == Generator::aes128_half) {
    make_child(Generator::aes128_mmo, seed, i == 1 ? 0 : i, out);
    for (std::size_t b = 0; i == 1 && b < block_len; ++b) out[b] ^= seed[b];
  } else if (generator == Generator::aes128_mmo) {
    std::uint8_t turned[block_len];
    for (std::size_t b = 0; b < 8; ++b) {
      turned[b] = seed[8 + b];
      turned[8 + b] = seed[b] ^ seed[8 + b];
    }
    aes::encrypt_block(aes::expand_key(fixed_keys[i], block_len), turned, out);
    for (std::size_t b = 0; b < block_len; ++b) out[b] ^= turned[b];
  } else if (generator == Generator::aes128_keyed) {
    std::uint8_t counter[block_len] = {};
    counter[block_len - 1] = static_cast<std::uint8_t>(i);
    aes::encrypt_block(aes::expand_key(seed, block_len), counter, out);
  } else {
    const std::uint32_t key[4] = {load_le32(seed), load_le32(seed + 4), load_le32(seed + 8), load_le32(seed + 12)};
    std::uint32_t x[16] = {};
    chacha_block(key, double_rounds_of(generator), x);
    chacha::store_words(out, x + 4 * i, 4);
  }
}

}  // namespace warpcipher::prg
