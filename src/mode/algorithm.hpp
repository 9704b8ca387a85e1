// SPDX-License-Identifier: Apache-2.0
// Algorithms: every cipher in every mode that is defined for it, known to the public API by one lower-case name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  // Whether that direction runs the cipher backwards.
  constexpr bool inverse(Direction direction) const {
    return direction == Direction::decrypt && (mode.id == Mode::ecb || mode.id == Mode::cbc || mode.id == Mode::xts);
  }
  // The piece of text that one cipher call covers: a block, or a byte in CFB8.
  constexpr std::size_t unit_len() const { return mode.id == Mode::cfb8 ? 1 : cipher.block_len; }
};

// SP 800-38D, section 5.2.1.1: plaintext of at most 2^39 - 256 bits. Section 5.2.1.2: tags of 128 to 96 bits, and for
// some uses 64 and 32.
inline constexpr std::uint64_t gcm_most_text_len = (std::uint64_t{1} << 36) - 32;
// Section 7.1, step 2: an IV of 96 bits is J0 but for its last word. All others are hashed.
inline constexpr std::size_t gcm_plain_iv_len = 12;
constexpr bool is_gcm_tag_len(std::size_t len) { return len == 4 || len == 8 || (len >= 12 && len <= 16); }

// All algorithms, in a fixed order: ciphers outside, modes inside.
std::span<const Algorithm> algorithms();

// The algorithm of that name; throws Error{invalid_argument} that names the nearest ones otherwise.
const Algorithm& find_algorithm(std::string_view name);

}  // namespace warpcipher
