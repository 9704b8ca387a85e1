// SPDX-License-Identifier: Apache-2.0
// Counter with CBC-MAC: SP 800-38C. Nonces of 7 to 13 bytes; tags of 4, 6, 8, 10, 12, 14 or 16 bytes.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "mode/ccm_format.hpp"
#include "mode/limits.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Ccm {
  static constexpr ModeInfo info{.id = Mode::ccm,
                                 .name = "ccm",
                                 .any_block_len = false,
                                 .whole_blocks = false,
                                 .iv = IvRule::any,
                                 .parallel_encrypt = false,
                                 .parallel_decrypt = false,
                                 .tag_lens = ccm_tag_lens,
                                 .iv_len = 12,
                                 .least_iv_len = 7,
                                 .most_iv_len = 13,
                                 .is_cut = false,
                                 .hashes_plaintext = true,
                                 .authenticates_tag_len = true,
                                 .block_of_lengths = ccm_lengths_len};

  // Section 6.1.
  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t tag[16];
    make_tag(cipher, m, m.in, tag);
    run_counter(cipher, m);
    std::memcpy(m.tag, tag, m.tag_len);
  }

  // Section 6.2: false when the tag does not match. The text has been written then, and the caller must wipe it.
  template <class C>
  [[nodiscard]] static bool decrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t tag[16];
    run_counter(cipher, m);
    make_tag(cipher, m, m.out, tag);
    return equal_constant_time(tag, m.tag, m.tag_len);
  }

  // Decrypts without a check of the tag, and writes the tag that the text should have to m.tag.
  template <class C>
  static void decrypt_unchecked(const C& cipher, const ModeInput& m) {
    std::uint8_t tag[16];
    run_counter(cipher, m);
    make_tag(cipher, m, m.out, tag);
    std::memcpy(m.tag, tag, m.tag_len);
  }

 private:
  template <class C>
  static void absorb(const C& cipher, std::uint8_t y[16], const std::uint8_t* data, std::size_t len) {
    for (std::size_t i = 0; i < len; i += 16) {
      xor_bytes(y, y, data + i, std::min<std::size_t>(16, len - i));
      cipher.encrypt_block(y, y);
    }
  }

  // Steps 1 to 6 of section 6.1: the MAC of the formatted blocks, under the first counter block.
  template <class C>
  static void make_tag(const C& cipher, const ModeInput& m, const std::uint8_t* text, std::uint8_t tag[16]) {
    std::uint8_t y[16], counter0[16], head[ccm_most_head_len];
    ccm_first_block(m.iv, m.iv_len, m.aad_len, m.len, m.tag_len, y);
    cipher.encrypt_block(y, y);
    if (m.aad_len != 0) {
      const std::size_t head_len = ccm_aad_head(m.aad_len, head);
      const std::size_t first = std::min<std::size_t>(16 - head_len, m.aad_len);
      xor_bytes(y, y, head, head_len);
      xor_bytes(y + head_len, y + head_len, m.aad, first);
      cipher.encrypt_block(y, y);
      absorb(cipher, y, m.aad + first, m.aad_len - first);
    }
    absorb(cipher, y, text, m.len);
    ccm_counter(m.iv, m.iv_len, counter0);
    cipher.encrypt_block(counter0, tag);
    xor_bytes(tag, tag, y, 16);
  }

  template <class C>
  static void run_counter(const C& cipher, const ModeInput& m) {
    std::uint8_t counter[16], keystream[16];
    ccm_counter(m.iv, m.iv_len, counter);
    for (std::size_t i = 0; i < m.len; i += 16) {
      add_be128(counter, 1);  // the text is too short for a carry into the nonce
      cipher.encrypt_block(counter, keystream);
      xor_bytes(m.out + i, m.in + i, keystream, std::min<std::size_t>(16, m.len - i));
    }
  }
};

}  // namespace warpcipher
