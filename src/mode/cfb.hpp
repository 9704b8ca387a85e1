// SPDX-License-Identifier: Apache-2.0
// Cipher feedback with segments of a whole block (CFB128, CFB64): SP 800-38A, section 6.3. The last segment may be
// short, as in every library that offers the mode as a stream.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Cfb {
  static constexpr ModeInfo info{.id = Mode::cfb,
                                 .name = "cfb",
                                 .any_block_len = true,
                                 .whole_blocks = false,
                                 .iv = IvRule::block,
                                 .parallel_encrypt = false,
                                 .parallel_decrypt = true,
                                 .reads_previous_block = true};

  template <class C>
  static void encrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t chain[C::block_len];
    std::memcpy(chain, m.iv, C::block_len);
    for (std::size_t i = 0; i < m.len; i += C::block_len) {
      const std::size_t n = std::min(C::block_len, m.len - i);
      cipher.encrypt_block(chain, chain);
      xor_bytes(chain, chain, m.in + i, n);
      std::memcpy(m.out + i, chain, n);
    }
  }

  template <class C>
  static void decrypt(const C& cipher, const ModeInput& m) {
    std::uint8_t chain[C::block_len], keystream[C::block_len];
    std::memcpy(chain, m.iv, C::block_len);
    for (std::size_t i = 0; i < m.len; i += C::block_len) {
      const std::size_t n = std::min(C::block_len, m.len - i);
      cipher.encrypt_block(chain, keystream);
      std::memcpy(chain, m.in + i, n);
      xor_bytes(m.out + i, chain, keystream, n);
    }
  }
};

}  // namespace warpcipher
