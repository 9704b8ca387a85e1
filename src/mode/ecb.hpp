// SPDX-License-Identifier: Apache-2.0
// Electronic codebook: SP 800-38A, section 6.1.
#pragma once

#include "mode/mode.hpp"

namespace warpcipher {

struct Ecb {
  static constexpr ModeInfo info{.id = Mode::ecb,
                                 .name = "ecb",
                                 .any_block_len = true,
                                 .whole_blocks = true,
                                 .iv = IvRule::none,
                                 .parallel_encrypt = true,
                                 .parallel_decrypt = true,
                                 .takes_padding = true,
                                 .inverts = true};

  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    for (std::size_t i = 0; i < m.len; i += C::block_len) cipher.encrypt_block(m.in + i, m.out + i);
  }

  template <class C>
  static void decrypt(const C& cipher, const ModeInput& m) {
    for (std::size_t i = 0; i < m.len; i += C::block_len) cipher.decrypt_block(m.in + i, m.out + i);
  }
};

}  // namespace warpcipher
