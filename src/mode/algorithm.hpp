// SPDX-License-Identifier: Apache-2.0
// Algorithms: every cipher in every mode that is defined for it, known to the public API by one lower-case name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cipher/list.hpp"
#include "mode/mode.hpp"

namespace warpcipher {

struct Algorithm {
  std::string_view name;  // "aes-256-gcm": cipher and mode
  CipherInfo cipher;
  ModeInfo mode;

  // Bytes of key that a caller gives: XTS takes two keys of the cipher (IEEE 1619, section 5.1).
  constexpr std::size_t key_len() const { return mode.id == Mode::xts ? 2 * cipher.key_len : cipher.key_len; }
  constexpr std::size_t block_len() const { return cipher.block_len; }
  constexpr bool is_aead() const { return mode.id == Mode::gcm; }
  constexpr bool takes_padding() const { return mode.id == Mode::ecb || mode.id == Mode::cbc; }
  constexpr bool parallel(Direction direction) const {
    return direction == Direction::encrypt ? mode.parallel_encrypt : mode.parallel_decrypt;
  }
  // The piece of text that one cipher call covers: a block, or a byte in CFB8.
  constexpr std::size_t unit_len() const { return mode.id == Mode::cfb8 ? 1 : cipher.block_len; }
};

// All algorithms, in a fixed order: ciphers outside, modes inside.
std::span<const Algorithm> algorithms();

// The algorithm of that name; throws Error{invalid_argument} that names the nearest ones otherwise.
const Algorithm& find_algorithm(std::string_view name);

}  // namespace warpcipher
