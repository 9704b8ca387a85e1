// SPDX-License-Identifier: Apache-2.0
// The key stream of a stream cipher: RFC 8439, section 2.4. The IV is the number of the first block, 4 bytes
// little-endian, and the nonce. The counter does not wrap: the checks refuse a text that would take it past 2^32 - 1.
// The last block may be short.
#pragma once

#include <algorithm>

#include "cipher/poly1305.hpp"
#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

// The most bytes of text under an IV: from the block with its counter to the last block of the key stream.
inline std::uint64_t key_stream_left(const std::uint8_t* iv) {
  return chacha_block_len * (chacha_most_blocks - load_le32(iv));
}

struct KeyStream {
  static constexpr ModeInfo info{.id = Mode::stream,
                                 .name = "",
                                 .any_block_len = false,
                                 .whole_blocks = false,
                                 .iv = IvRule::fixed,
                                 .parallel_encrypt = true,
                                 .parallel_decrypt = true,
                                 .most_text_len = chacha_block_len * chacha_most_blocks,
                                 .iv_len = chacha_iv_len};

  template <class C>
  static void encrypt(C& cipher, const ModeInput& m) {
    cipher.start(m.iv + 4);
    apply(cipher, load_le32(m.iv), m);
  }

  template <class C>
  static void decrypt(C& cipher, const ModeInput& m) {
    encrypt(cipher, m);
  }

  // Adds the key stream from block `counter` on to the text.
  template <class C>
  static void apply(const C& cipher, std::uint32_t counter, const ModeInput& m) {
    std::uint8_t block[64];
    for (std::size_t i = 0; i < m.len; i += 64) {
      cipher.key_stream(counter++, block);
      xor_bytes(m.out + i, m.in + i, block, std::min<std::size_t>(64, m.len - i));
    }
  }
};

// The AEAD of a stream cipher and Poly1305: RFC 8439, section 2.8. Tags of 16 bytes.
struct Poly1305 {
  static constexpr ModeInfo info{.id = Mode::poly1305,
                                 .name = "poly1305",
                                 .any_block_len = false,
                                 .whole_blocks = false,
                                 .iv = IvRule::fixed,
                                 .parallel_encrypt = true,
                                 .parallel_decrypt = true,
                                 .tag_lens = tag_len_bit(full_tag_len),
                                 .most_text_len = chacha_poly1305_most_text_len};

  template <class C>
  static void encrypt(C& cipher, const ModeInput& m) {
    cipher.start(m.iv);
    KeyStream::apply(cipher, 1 + m.first_block, m);
    make_tag(cipher, m, m.out, m.tag);
  }

  // Returns false, and has written nothing, when the tag does not match.
  template <class C>
  [[nodiscard]] static bool decrypt(C& cipher, const ModeInput& m) {
    std::uint8_t tag[full_tag_len];
    cipher.start(m.iv);
    make_tag(cipher, m, m.in, tag);
    const bool good = equal_constant_time(tag, m.tag, full_tag_len);
    secure_wipe(tag, sizeof tag);
    if (good) KeyStream::apply(cipher, 1, m);
    return good;
  }

  // Decrypts without a check of the tag, and writes the tag that the text should have to m.tag.
  template <class C>
  static void decrypt_unchecked(C& cipher, const ModeInput& m) {
    cipher.start(m.iv);
    make_tag(cipher, m, m.in, m.tag);
    KeyStream::apply(cipher, 1 + m.first_block, m);
  }

 private:
  // Section 2.6: the key is the first half of block 0. Section 2.8: AAD and ciphertext are filled up with zeros to
  // blocks of 16 bytes, and their lengths follow. Of a part, only the sum.
  template <class C>
  static void make_tag(const C& cipher, const ModeInput& m, const std::uint8_t* ciphertext, std::uint8_t* tag) {
    std::uint8_t key[64], lengths[16];
    cipher.key_stream(0, key);
    Secret<poly1305::Hash> hash(poly1305::Hash::start(key));
    hash->add_padded(m.aad, m.aad_len);
    hash->add_padded(ciphertext, m.len);
    secure_wipe(key, sizeof key);
    if (m.is_part) return poly1305::store_sum(hash->h, tag);
    store_le64(lengths, m.aad_len);
    store_le64(lengths + 8, m.len);
    hash->add_padded(lengths, sizeof lengths);
    hash->finish(tag);
  }
};

}  // namespace warpcipher
