// SPDX-License-Identifier: Apache-2.0
// The key stream of a stream cipher: RFC 8439, section 2.4. The IV is the number of the first block, 4 bytes
// little-endian, and the nonce. The counter does not wrap: the checks refuse a text that would take it past 2^32 - 1.
// The last block may be short.
#pragma once

#include <algorithm>

#include "core/bytes.hpp"
#include "mode/limits.hpp"
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

}  // namespace warpcipher
