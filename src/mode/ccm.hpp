// SPDX-License-Identifier: Apache-2.0
// Counter with CBC-MAC: SP 800-38C. Nonces of 7 to 13 bytes; tags of 4, 6, 8, 10, 12, 14 or 16 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bytes.hpp"
#include "core/host_device.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

// The blocks that CCM makes of a message besides its text: SP 800-38C, appendix A. For host and device.

// Before the first byte of associated data stands its length, in 2, 6 or 10 bytes (section A.2.2).
inline constexpr std::size_t ccm_most_head_len = 10;

// B0 (section A.2.1):
//
//   byte     0                                          1 .. n   16-q .. 15
//            64 (aad_len > 0) + 8 (t - 2) / 2 + q - 1   nonce    text_len, big-endian         n + q = 15, t = tag_len
WARPCIPHER_HD constexpr void ccm_first_block(const std::uint8_t* nonce, std::size_t nonce_len, std::uint64_t aad_len,
                                      std::uint64_t text_len, std::size_t tag_len, std::uint8_t block[16]) {
  block[0] = static_cast<std::uint8_t>((aad_len != 0 ? 64 : 0) + 4 * (tag_len - 2) + ccm_lengths_len - nonce_len - 1);
  for (std::size_t i = 0; i < nonce_len; ++i) block[1 + i] = nonce[i];
  for (std::size_t i = 15; i > nonce_len; --i, text_len >>= 8) block[i] = static_cast<std::uint8_t>(text_len);
}

// Ctr0 (section A.3): q - 1, the nonce, and a counter of q bytes that is 0.
WARPCIPHER_HD constexpr void ccm_counter(const std::uint8_t* nonce, std::size_t nonce_len, std::uint8_t block[16]) {
  block[0] = static_cast<std::uint8_t>(ccm_lengths_len - nonce_len - 1);
  for (std::size_t i = 0; i < 15; ++i) block[1 + i] = i < nonce_len ? nonce[i] : std::uint8_t{0};
}

// Writes the bytes before `aad_len` > 0 bytes of associated data; returns its length.
WARPCIPHER_HD constexpr std::size_t ccm_aad_head(std::uint64_t aad_len, std::uint8_t head[ccm_most_head_len]) {
  const std::size_t bytes = aad_len < 0xff00 ? 2 : aad_len >> 32 == 0 ? 4 : 8;
  const std::size_t mark = bytes == 2 ? 0 : 2;
  if (mark != 0) {
    head[0] = 0xff;
    head[1] = bytes == 4 ? 0xfe : 0xff;
  }
  for (std::size_t i = mark + bytes; i > mark; --i, aad_len >>= 8) head[i - 1] = static_cast<std::uint8_t>(aad_len);
  return mark + bytes;
}

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
