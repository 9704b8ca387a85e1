// SPDX-License-Identifier: Apache-2.0
// Output feedback: SP 800-38A, section 6.4. The last block may be short.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Ofb {
  static constexpr ModeInfo info{.id = Mode::ofb,
                                 .name = "ofb",
                                 .any_block_len = true,
                                 .whole_blocks = false,
                                 .iv = IvRule::block,
                                 .parallel_encrypt = false,
                                 .parallel_decrypt = false};

  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t keystream[C::block_len];
    std::memcpy(keystream, m.iv, C::block_len);
    for (std::size_t i = 0; i < m.len; i += C::block_len) {
      cipher.encrypt_block(keystream, keystream);
      xor_bytes(m.out + i, m.in + i, keystream, std::min(C::block_len, m.len - i));
    }
  }

  template <class C>
  static void decrypt(const C& cipher, const ModeInput& m) {
    encrypt(cipher, m);
  }
};

}  // namespace warpcipher
