// SPDX-License-Identifier: Apache-2.0
// Counter mode: SP 800-38A, section 6.5. The whole block is one big-endian counter that wraps at 2^128 (appendix B.1
// with m = 128), as in OpenSSL. The last block may be short.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Ctr {
  static constexpr ModeInfo info{.id = Mode::ctr,
                                 .name = "ctr",
                                 .any_block_len = false,
                                 .whole_blocks = false,
                                 .iv = IvRule::block,
                                 .parallel_encrypt = true,
                                 .parallel_decrypt = true};

  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t counter[16], keystream[16];
    std::memcpy(counter, m.iv, 16);
    for (std::size_t i = 0; i < m.len; i += 16) {
      cipher.encrypt_block(counter, keystream);
      xor_bytes(m.out + i, m.in + i, keystream, std::min<std::size_t>(16, m.len - i));
      add_be128(counter, 1);
    }
  }

  template <class C>
  static void decrypt(const C& cipher, const ModeInput& m) {
    encrypt(cipher, m);
  }
};

}  // namespace warpcipher
