// SPDX-License-Identifier: Apache-2.0
// XTS: IEEE 1619-2018, section 5; approved by SP 800-38E. One message is one data unit of at least a block; a last
// block that is short steals ciphertext from the one before it. Takes two ciphers: one for the data, one for the tweak.
#pragma once

#include <cstring>

#include "core/bytes.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Xts {
  static constexpr ModeInfo info{.id = Mode::xts,
                                 .name = "xts",
                                 .any_block_len = false,
                                 .whole_blocks = false,
                                 .iv = IvRule::block,
                                 .parallel_encrypt = true,
                                 .parallel_decrypt = true,
                                 .least_text_len = xts_least_text_len,
                                 .most_text_len = xts_most_text_len,
                                 .no_key_192 = true,
                                 .two_keys = true,
                                 .steals = true,
                                 .inverts = true};

  template <class C>
  static void encrypt(const C& data, const C& tweak, const ModeInput& m) {
    run(data, tweak, m, true);
  }

  template <class C>
  static void decrypt(const C& data, const C& tweak, const ModeInput& m) {
    run(data, tweak, m, false);
  }

 private:
  // T * alpha in GF(2^128), bytes in little-endian order (section 5.2): shift left by one, fold the carry back as
  // x^128 = x^7 + x^2 + x + 1.
  static void multiply_by_alpha(std::uint8_t t[16]) {
    std::uint8_t carry = 0;
    for (int i = 0; i < 16; ++i) {
      const auto next = static_cast<std::uint8_t>(t[i] >> 7);
      t[i] = static_cast<std::uint8_t>(t[i] << 1 | carry);
      carry = next;
    }
    t[0] = static_cast<std::uint8_t>(t[0] ^ 0x87 * carry);
  }

  template <class C>
  static void block(const C& data, const std::uint8_t t[16], const std::uint8_t* in, std::uint8_t* out,
                    bool encrypting) {
    std::uint8_t x[16];
    xor_bytes(x, in, t, 16);
    encrypting ? data.encrypt_block(x, x) : data.decrypt_block(x, x);
    xor_bytes(out, x, t, 16);
  }

  template <class C>
  static void run(const C& data, const C& tweak, const ModeInput& m, bool encrypting) {
    std::uint8_t t[16];
    tweak.encrypt_block(m.iv, t);
    const std::size_t tail = m.len % 16;
    const std::size_t plain_blocks = m.len / 16 - (tail != 0 ? 1 : 0);
    std::size_t i = 0;
    for (; i < 16 * plain_blocks; i += 16) {
      block(data, t, m.in + i, m.out + i, encrypting);
      multiply_by_alpha(t);
    }
    if (tail != 0) steal(data, t, m.in + i, m.out + i, tail, encrypting);
  }

  // Section 5.3.2 and 5.4.2: the last whole block and the short one. Decryption takes the two tweaks in the other
  // order.
  template <class C>
  static void steal(const C& data, const std::uint8_t t[16], const std::uint8_t* in, std::uint8_t* out,
                    std::size_t tail, bool encrypting) {
    std::uint8_t next[16], first[16], second[16];
    std::memcpy(next, t, 16);
    multiply_by_alpha(next);
    block(data, encrypting ? t : next, in, first, encrypting);
    std::memcpy(second, first, 16);
    std::memcpy(second, in + 16, tail);
    std::memcpy(out + 16, first, tail);
    block(data, encrypting ? next : t, second, out, encrypting);
  }
};

}  // namespace warpcipher
