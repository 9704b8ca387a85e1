// SPDX-License-Identifier: Apache-2.0
// A mode of operation: the facts that engines, checks and plans need, and the input of the mode functions.
//
// Each mode header holds a struct with `info` and two templates, `encrypt` and `decrypt`, over a block cipher C:
//   static constexpr std::size_t C::block_len;
//   void C::encrypt_block(const std::uint8_t* in, std::uint8_t* out) const;   (in == out allowed)
//   void C::decrypt_block(const std::uint8_t* in, std::uint8_t* out) const;
// They are the plain text of the standard: the reference engine runs them, and every other engine is held
// against it. `in` may equal `out`; lengths are in bytes and already checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warpcipher {

enum class Mode : std::uint8_t { ecb, cbc, cfb, cfb8, ofb, ctr, gcm, xts };

enum class Direction : std::uint8_t { encrypt, decrypt };

enum class IvRule : std::uint8_t {
  none,   // the mode takes no IV
  block,  // exactly one block
  any,    // one byte or more
};

struct ModeInfo {
  Mode id;
  std::string_view name;
  bool any_block_len;  // defined for 64-bit blocks too, not for 128-bit blocks alone
  bool whole_blocks;   // the text is a multiple of the block (PKCS#7 padding makes it one)
  IvRule iv;
  bool parallel_encrypt;  // blocks of one message can be encrypted in any order
  bool parallel_decrypt;
};

struct ModeInput {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;
  const std::uint8_t* iv = nullptr;
  std::size_t iv_len = 0;
  const std::uint8_t* aad = nullptr;
  std::size_t aad_len = 0;
  std::uint8_t* tag = nullptr;  // GCM alone: written by encrypt, compared by decrypt
  std::size_t tag_len = 0;
};

}  // namespace warpcipher
