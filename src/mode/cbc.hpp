// SPDX-License-Identifier: Apache-2.0
// Cipher block chaining: SP 800-38A, section 6.2.
#pragma once

#include <cstring>

#include "core/bytes.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Cbc {
  static constexpr ModeInfo info{.id = Mode::cbc,
                                 .name = "cbc",
                                 .any_block_len = true,
                                 .whole_blocks = true,
                                 .iv = IvRule::block,
                                 .parallel_encrypt = false,
                                 .parallel_decrypt = true,
                                 .takes_padding = true,
                                 .inverts = true,
                                 .reads_previous_block = true};

  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t chain[C::block_len];
    std::memcpy(chain, m.iv, C::block_len);
    for (std::size_t i = 0; i < m.len; i += C::block_len) {
      xor_bytes(chain, chain, m.in + i, C::block_len);
      cipher.encrypt_block(chain, chain);
      std::memcpy(m.out + i, chain, C::block_len);
    }
  }

  template <class C>
  static void decrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t chain[C::block_len], ciphertext[C::block_len], text[C::block_len];
    std::memcpy(chain, m.iv, C::block_len);
    for (std::size_t i = 0; i < m.len; i += C::block_len) {
      std::memcpy(ciphertext, m.in + i, C::block_len);
      cipher.decrypt_block(ciphertext, text);
      xor_bytes(m.out + i, text, chain, C::block_len);
      std::memcpy(chain, ciphertext, C::block_len);
    }
  }
};

}  // namespace warpcipher
