// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV: RFC 8452. Nonces of 12 bytes, which may repeat; tags of 16 bytes.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct GcmSiv {
  static constexpr ModeInfo info{.id = Mode::gcm_siv,
                                 .name = "gcm-siv",
                                 .any_block_len = false,
                                 .whole_blocks = false,
                                 .iv = IvRule::fixed,
                                 .parallel_encrypt = true,
                                 .parallel_decrypt = true,
                                 .tag_lens = tag_len_bit(full_tag_len),
                                 .most_text_len = gcm_siv_most_len,
                                 .most_aad_len = gcm_siv_most_len,
                                 .nonces_may_repeat = true,
                                 .iv_len = gcm_siv_nonce_len,
                                 .no_key_192 = true,
                                 .is_cut = false,
                                 .hashes_plaintext = true};

  // The keys of one nonce.
  struct Keys {
    std::uint8_t authentication[16];
    std::uint8_t encryption[32];  // as many bytes as the key has
  };

  // Section 4: each block that E makes of a counter and the nonce gives 8 bytes.
  template <class C>
  static void derive(const C& cipher, std::size_t key_len, const std::uint8_t* nonce, Keys& keys) {
    std::uint8_t block[16], derived[48];
    for (std::uint32_t i = 0; i < 2 + key_len / 8; ++i) {
      store_le32(block, i);
      std::memcpy(block + 4, nonce, gcm_siv_nonce_len);
      cipher.encrypt_block(block, block);
      std::memcpy(derived + 8 * std::size_t{i}, block, 8);
    }
    std::memcpy(keys.authentication, derived, sizeof keys.authentication);
    std::memcpy(keys.encryption, derived + 16, key_len);
    secure_wipe(derived, sizeof derived);
    secure_wipe(block, sizeof block);
  }

  // `cipher` has the derived encryption key. The text is hashed before it is encrypted.
  template <class C>
  static void encrypt(const C& cipher, const std::uint8_t* authentication_key, const ModeInput& m) {
    std::uint8_t tag[16];
    make_tag(cipher, authentication_key, m, m.in, tag);
    run_counter(cipher, tag, m);
    std::memcpy(m.tag, tag, sizeof tag);
  }

  // Decrypts from `given_tag`, and writes the tag that the text should have to m.tag.
  template <class C>
  static void decrypt_unchecked(const C& cipher, const std::uint8_t* authentication_key, const std::uint8_t* given_tag,
                                const ModeInput& m) {
    run_counter(cipher, given_tag, m);
    make_tag(cipher, authentication_key, m, m.out, m.tag);
  }

  // Returns false when the tag does not match; then the caller wipes `out`.
  template <class C>
  [[nodiscard]] static bool decrypt(const C& cipher, const std::uint8_t* authentication_key, const ModeInput& m) {
    std::uint8_t tag[16];
    run_counter(cipher, m.tag, m);
    make_tag(cipher, authentication_key, m, m.out, tag);
    const bool good = equal_constant_time(tag, m.tag, sizeof tag);
    secure_wipe(tag, sizeof tag);
    return good;
  }

 private:
  // x <- x y x^-128 modulo x^128 + x^127 + x^126 + x^121 + 1 (section 3, "dot"); bit i of the little-endian number is
  // the coefficient of x^i.
  static void multiply(std::uint8_t x[16], const std::uint8_t y[16]) {
    const std::uint64_t y_low = load_le64(y), y_high = load_le64(y + 8);
    std::uint64_t low = 0, high = 0;
    for (int i = 0; i < 128; ++i) {
      const std::uint64_t take = 0 - static_cast<std::uint64_t>(x[i / 8] >> (i % 8) & 1);
      low ^= y_low & take;
      high ^= y_high & take;
      const std::uint64_t reduce = 0 - (low & 1);  // adds the polynomial, then divides by x
      low = low >> 1 | high << 63;
      high = high >> 1 ^ (reduce & 0xe1ull << 56);
    }
    store_le64(x, low);
    store_le64(x + 8, high);
  }

  // POLYVAL of the data, filled up with zeros to whole blocks.
  static void absorb(std::uint8_t sum[16], const std::uint8_t key[16], const std::uint8_t* data, std::size_t len) {
    for (std::size_t i = 0; i < len; i += 16) {
      xor_bytes(sum, sum, data + i, std::min<std::size_t>(16, len - i));
      multiply(sum, key);
    }
  }

  template <class C>
  static void make_tag(const C& cipher, const std::uint8_t* key, const ModeInput& m, const std::uint8_t* plaintext,
                       std::uint8_t tag[16]) {
    std::uint8_t lengths[16];
    store_le64(lengths, std::uint64_t{8} * m.aad_len);
    store_le64(lengths + 8, std::uint64_t{8} * m.len);
    std::memset(tag, 0, 16);
    absorb(tag, key, m.aad, m.aad_len);
    absorb(tag, key, plaintext, m.len);
    absorb(tag, key, lengths, sizeof lengths);
    xor_bytes(tag, tag, m.iv, gcm_siv_nonce_len);
    tag[15] &= 0x7f;
    cipher.encrypt_block(tag, tag);
  }

  // Section 4: the tag with its last bit set is the first counter block; its first 32 bits count, little-endian, and
  // wrap.
  template <class C>
  static void run_counter(const C& cipher, const std::uint8_t tag[16], const ModeInput& m) {
    std::uint8_t counter[16], keystream[16];
    std::memcpy(counter, tag, sizeof counter);
    counter[15] |= 0x80;
    for (std::size_t i = 0; i < m.len; i += 16) {
      cipher.encrypt_block(counter, keystream);
      xor_bytes(m.out + i, m.in + i, keystream, std::min<std::size_t>(16, m.len - i));
      store_le32(counter, load_le32(counter) + 1);
    }
  }
};

}  // namespace warpcipher
