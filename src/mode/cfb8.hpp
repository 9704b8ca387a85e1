// SPDX-License-Identifier: Apache-2.0
// Cipher feedback with segments of one byte: SP 800-38A, section 6.3, s = 8.
#pragma once

#include <cstring>

#include "mode/mode.hpp"

namespace warpcipher {

struct Cfb8 {
  static constexpr ModeInfo info{.id = Mode::cfb8,
                                 .name = "cfb8",
                                 .any_block_len = true,
                                 .whole_blocks = false,
                                 .iv = IvRule::block,
                                 .parallel_encrypt = false,
                                 .parallel_decrypt = true,
                                 .reads_previous_block = true,
                                 .by_byte = true};

  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    run(cipher, m, true);
  }

  template <class C>
  static void decrypt(const C& cipher, const ModeInput& m) {
    run(cipher, m, false);
  }

 private:
  // The shift register holds the last block_len bytes of IV || ciphertext.
  template <class C>
  static void run(const C& cipher, const ModeInput& m, bool encrypting) {
    std::uint8_t shift[C::block_len], keystream[C::block_len];
    std::memcpy(shift, m.iv, C::block_len);
    for (std::size_t i = 0; i < m.len; ++i) {
      cipher.encrypt_block(shift, keystream);
      const std::uint8_t text = m.in[i];
      m.out[i] = static_cast<std::uint8_t>(text ^ keystream[0]);
      const std::uint8_t ciphertext = encrypting ? m.out[i] : text;
      std::memmove(shift, shift + 1, C::block_len - 1);
      shift[C::block_len - 1] = ciphertext;
    }
  }
};

}  // namespace warpcipher
