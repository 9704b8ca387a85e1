// SPDX-License-Identifier: Apache-2.0
// What is done with a cipher: the facts that engines, checks and plans need, and the input of the functions.
//
// For a block cipher that is a mode of operation. A stream cipher has none: its text is combined with its key stream
// (`stream`), and its AEAD is the construction of RFC 8439 (`poly1305`). These two stand in the same list.
//
// Each mode header holds a struct with `info` and two templates, `encrypt` and `decrypt`, over a block cipher C:
//   static constexpr std::size_t C::block_len;
//   void C::encrypt_block(const std::uint8_t* in, std::uint8_t* out) const;   (in == out allowed)
//   void C::decrypt_block(const std::uint8_t* in, std::uint8_t* out) const;
// or over a stream cipher C:
//   static constexpr std::size_t C::nonce_len;
//   void C::start(const std::uint8_t* nonce);
//   void C::key_stream(std::uint32_t counter, std::uint8_t out[64]) const;
// They are the plain text of the standard: the reference engine runs them, and every other engine is held
// against it. `in` may equal `out`; lengths are in bytes and already checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warpcipher {

enum class Mode : std::uint8_t { ecb, cbc, cfb, cfb8, ofb, ctr, gcm, xts, gcm_siv, stream, poly1305 };
inline constexpr std::size_t mode_count = 11;

enum class Direction : std::uint8_t { encrypt, decrypt };

enum class IvRule : std::uint8_t {
  none,   // the mode takes no IV
  block,  // exactly one block
  any,    // one byte or more
  fixed,  // exactly Algorithm::iv_len bytes, which are not a block
};

struct ModeInfo {
  Mode id;
  std::string_view name;
  bool any_block_len;  // defined for 64-bit blocks too, not for 128-bit blocks alone
  bool whole_blocks;   // the text is a multiple of the block (PKCS#7 padding makes it one)
  IvRule iv;
  bool parallel_encrypt;  // blocks of one message can be encrypted in any order
  bool parallel_decrypt;
  std::uint32_t tag_lens = 0;  // of an AEAD: tag_len_bit() of each length that it takes
  std::uint64_t least_text_len = 0;
  std::uint64_t most_text_len = UINT64_MAX;
  std::uint64_t most_aad_len = UINT64_MAX;
  bool nonces_may_repeat = false;  // of an AEAD: a repeated nonce reveals no more than whether messages are equal
};

struct ModeInput {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;
  const std::uint8_t* iv = nullptr;
  std::size_t iv_len = 0;
  const std::uint8_t* aad = nullptr;
  std::size_t aad_len = 0;
  std::uint8_t* tag = nullptr;  // AEADs alone: written by encrypt, compared by decrypt
  std::size_t tag_len = 0;
  bool is_part = false;  // Poly1305: as in Message, with first_block
  std::uint32_t first_block = 0;
};

}  // namespace warpcipher
