// SPDX-License-Identifier: Apache-2.0
// Algorithms: every block cipher in every mode that is defined for it, and every stream cipher, bare and as an AEAD.
// The public API knows each by one lower-case name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cipher/list.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Algorithm {
  std::string_view name;  // "aes-256-gcm": cipher and mode; "chacha20"
  CipherInfo cipher;
  ModeInfo mode;
  std::size_t iv_len;  // bytes of IV that it takes; the usual length where it takes any

  // Bytes of key that a caller gives: XTS takes two keys of the cipher (IEEE 1619, section 5.1).
  constexpr std::size_t key_len() const { return mode.two_keys ? 2 * cipher.key_len : cipher.key_len; }
  constexpr std::size_t block_len() const { return cipher.block_len; }
  constexpr bool is_aead() const { return mode.tag_lens != 0; }
  constexpr bool takes_tag_len(std::size_t len) const { return (mode.tag_lens & tag_len_bit(len)) != 0; }
  constexpr bool takes_padding() const { return mode.takes_padding; }
  constexpr bool parallel(Direction direction) const {
    return direction == Direction::encrypt ? mode.parallel_encrypt : mode.parallel_decrypt;
  }
  // Whether that direction runs the cipher backwards.
  constexpr bool inverse(Direction direction) const { return direction == Direction::decrypt && mode.inverts; }
  // The piece of text that one cipher call covers: a block, or a byte in CFB8.
  constexpr std::size_t unit_len() const { return mode.by_byte ? 1 : cipher.block_len; }
};

// The lengths of tag that an AEAD takes, for errors: "4, 8 or 12 to 16".
std::string tag_lens_text(const Algorithm& algorithm);

// All algorithms, in a fixed order: ciphers outside, modes inside.
std::span<const Algorithm> algorithms();

// The algorithm of that name; throws Error{invalid_argument} that names the nearest ones otherwise.
const Algorithm& find_algorithm(std::string_view name);

}  // namespace warpcipher
