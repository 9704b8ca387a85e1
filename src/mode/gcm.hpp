// SPDX-License-Identifier: Apache-2.0
// Galois/counter mode: SP 800-38D. IVs of any length of one byte or more; tags of 4, 8, 12 to 16 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Gcm {
  static constexpr ModeInfo info{.id = Mode::gcm,
                                 .name = "gcm",
                                 .any_block_len = false,
                                 .whole_blocks = false,
                                 .iv = IvRule::any,
                                 .parallel_encrypt = true,
                                 .parallel_decrypt = true,
                                 .tag_lens = gcm_tag_lens,
                                 .most_text_len = gcm_most_text_len,
                                 .iv_len = gcm_plain_iv_len};

  // Algorithm 4, section 7.1.
  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t hash_key[16], counter0[16], tag[16];
    start(cipher, m, hash_key, counter0);
    run_counter(cipher, counter0, m);
    make_tag(cipher, hash_key, counter0, m, m.out, tag);
    std::memcpy(m.tag, tag, m.tag_len);
  }

  // Algorithm 5, section 7.2: returns false, and has written nothing, when the tag does not match.
  template <class C>
  [[nodiscard]] static bool decrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t hash_key[16], counter0[16], tag[16];
    start(cipher, m, hash_key, counter0);
    make_tag(cipher, hash_key, counter0, m, m.in, tag);
    if (!equal_constant_time(tag, m.tag, m.tag_len)) return false;
    run_counter(cipher, counter0, m);
    return true;
  }

  // Decrypts without a check of the tag, and writes the tag that the text should have to m.tag.
  template <class C>
  static void decrypt_unchecked(const C& cipher, const ModeInput& m) {
    std::uint8_t hash_key[16], counter0[16], tag[16];
    start(cipher, m, hash_key, counter0);
    make_tag(cipher, hash_key, counter0, m, m.in, tag);
    std::memcpy(m.tag, tag, m.tag_len);
    run_counter(cipher, counter0, m);
  }

 private:
  // Algorithm 1, section 6.3: bit 0 of a block is the most significant bit of its first byte.
  static void multiply(std::uint8_t x[16], const std::uint8_t y[16]) {
    std::uint64_t v_high = load_be64(y), v_low = load_be64(y + 8), z_high = 0, z_low = 0;
    for (int i = 0; i < 128; ++i) {
      const std::uint64_t take = 0 - static_cast<std::uint64_t>(x[i / 8] >> (7 - i % 8) & 1);
      z_high ^= v_high & take;
      z_low ^= v_low & take;
      const std::uint64_t reduce = 0 - (v_low & 1);
      v_low = v_low >> 1 | v_high << 63;
      v_high = v_high >> 1 ^ (reduce & 0xe1ull << 56);
    }
    store_be64(x, z_high);
    store_be64(x + 8, z_low);
  }

  // Algorithm 2, section 6.4, on the data padded with zeros to whole blocks.
  static void absorb(std::uint8_t y[16], const std::uint8_t hash_key[16], const std::uint8_t* data, std::size_t len) {
    for (std::size_t i = 0; i < len; i += 16) {
      xor_bytes(y, y, data + i, std::min<std::size_t>(16, len - i));
      multiply(y, hash_key);
    }
  }

  static void absorb_lengths(std::uint8_t y[16], const std::uint8_t hash_key[16], std::size_t aad_len,
                             std::size_t len) {
    std::uint8_t lengths[16];
    store_be64(lengths, std::uint64_t{8} * aad_len);
    store_be64(lengths + 8, std::uint64_t{8} * len);
    absorb(y, hash_key, lengths, 16);
  }

  // Steps 1 and 2 of algorithm 4: the hash key H and the counter block J0.
  template <class C>
  static void start(const C& cipher, const ModeInput& m, std::uint8_t hash_key[16], std::uint8_t counter0[16]) {
    std::memset(hash_key, 0, 16);
    cipher.encrypt_block(hash_key, hash_key);
    std::memset(counter0, 0, 16);
    if (m.iv_len == 12) {
      std::memcpy(counter0, m.iv, 12);
      counter0[15] = 1;
    } else {
      absorb(counter0, hash_key, m.iv, m.iv_len);
      absorb_lengths(counter0, hash_key, 0, m.iv_len);
    }
  }

  // Algorithm 3, section 6.5, from inc32(J0).
  template <class C>
  static void run_counter(const C& cipher, const std::uint8_t counter0[16], const ModeInput& m) {
    std::uint8_t counter[16], keystream[16];
    std::memcpy(counter, counter0, 16);
    for (std::size_t i = 0; i < m.len; i += 16) {
      add_be32(counter, 1);
      cipher.encrypt_block(counter, keystream);
      xor_bytes(m.out + i, m.in + i, keystream, std::min<std::size_t>(16, m.len - i));
    }
  }

  template <class C>
  static void make_tag(const C& cipher, const std::uint8_t hash_key[16], const std::uint8_t counter0[16],
                       const ModeInput& m, const std::uint8_t* ciphertext, std::uint8_t tag[16]) {
    std::uint8_t hash[16] = {};
    absorb(hash, hash_key, m.aad, m.aad_len);
    absorb(hash, hash_key, ciphertext, m.len);
    absorb_lengths(hash, hash_key, m.aad_len, m.len);
    cipher.encrypt_block(counter0, tag);
    xor_bytes(tag, tag, hash, 16);
  }
};

// The counter block that a GCM message begins with, for engines that compute it on the host. gcm.hpp has it as the
// standard writes it.

// J0 (SP 800-38D, section 7.1, step 2). hash_key() gives H; it is called only where the IV has to be hashed.
template <class HashKey>
gf128::Element gcm_first_counter(const std::uint8_t* iv, std::size_t iv_len, HashKey&& hash_key) {
  if (iv_len == gcm_plain_iv_len) return {load_be64(iv), std::uint64_t{load_be32(iv + 8)} << 32 | 1};
  const gf128::Element h = hash_key();
  gf128::Element hash = gf128::ghash({}, h, iv, iv_len / 16);
  if (iv_len % 16 != 0) {
    std::uint8_t last[16] = {};
    std::memcpy(last, iv + iv_len / 16 * 16, iv_len % 16);
    hash = gf128::ghash(hash, h, last, 1);
  }
  return gf128::gcm_multiply(gf128::add(hash, {0, 8 * std::uint64_t{iv_len}}), h);
}

// A long message in parts, each a message of its own.

// inc32 (section 6.2), n times.
constexpr gf128::Element gcm_advance(gf128::Element counter, std::uint64_t n) {
  return {counter.high, (counter.low & 0xffffffff00000000u) | ((counter.low + n) & 0xffffffffu)};
}

// 1 / a = a^(2^128 - 2) (Fermat): the product of the squares a^2, a^4, ... a^(2^127).
constexpr gf128::Element gcm_inverse(gf128::Element a) {
  gf128::Element result = gf128::gcm_one;
  for (int i = 1; i < 128; ++i) {
    a = gf128::gcm_square(a);
    result = gf128::gcm_multiply(result, a);
  }
  return result;
}

// The 16-byte IV from which step 2 makes the counter block J0:  J0 = (IV H + [0] || [128]) H. With H = 0, which one key
// in 2^128 has, only J0 = 0 has one. inverse: of H.
constexpr gf128::Element gcm_solve_iv(gf128::Element counter0, gf128::Element inverse) {
  return gf128::gcm_multiply(gf128::add(gf128::gcm_multiply(counter0, inverse), {0, 128}), inverse);
}

}  // namespace warpcipher
