// SPDX-License-Identifier: Apache-2.0
// A cipher's use: the facts that engines, checks and plans need, and the input of the functions.
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

enum class Mode : std::uint8_t { ecb, cbc, cfb, cfb8, ofb, ctr, gcm, xts, gcm_siv, stream, poly1305, ccm };
inline constexpr std::size_t mode_count = 12;

enum class Direction : std::uint8_t { encrypt, decrypt };

enum class IvRule : std::uint8_t {
  none,   // the mode takes no IV
  block,  // exactly one block
  any,    // one byte or more
  fixed,  // exactly Algorithm::iv_len bytes, which are not a block
};

// All that checks, plans and engines branch on. A new mode says it here; engines list the modes that they can run.
struct ModeInfo {
  Mode id;
  std::string_view name;
  bool any_block_len;  // defined for 64-bit blocks too, not only for 128-bit blocks
  bool whole_blocks;   // the text is a multiple of the block (PKCS#7 padding makes it one)
  IvRule iv;
  bool parallel_encrypt;  // blocks of one message can be encrypted in any order
  bool parallel_decrypt;
  std::uint32_t tag_lens = 0;  // of an AEAD: tag_len_bit() of each length that it takes
  std::uint64_t least_text_len = 0;
  std::uint64_t most_text_len = UINT64_MAX;
  std::uint64_t most_aad_len = UINT64_MAX;
  bool nonces_may_repeat = false;  // of an AEAD: a repeated nonce reveals no more than whether messages are equal
  std::size_t iv_len = 0;          // IvRule::fixed: its length, 0 if the cipher says it; IvRule::any: the usual length
  std::size_t least_iv_len = 1;    // IvRule::any
  std::size_t most_iv_len = SIZE_MAX;
  bool takes_padding = false;          // PKCS#7
  bool no_key_192 = false;             // defined for AES-128 and AES-256 only
  bool two_keys = false;               // a key is two keys of the cipher, which must differ
  bool inverts = false;                // decryption runs the cipher backwards
  bool reads_previous_block = false;   // decryption of a block reads the ciphertext before it
  bool by_byte = false;                // a call of the cipher covers a byte of text, not a block
  bool is_cut = true;                  // a long message that is parallel can run as several
  bool hashes_plaintext = false;       // of an AEAD: encryption needs the tag of the whole text before its first byte
  bool authenticates_tag_len = false;  // a shorter tag is not the beginning of a longer one
  std::size_t block_of_lengths = 0;    // the nonce and the text's length share this many bytes

  // Texts of one nonce have at most so many bytes.
  constexpr std::uint64_t most_text_len_with(std::size_t nonce_len) const {
    const std::size_t bits = block_of_lengths == 0 ? 64 : 8 * (block_of_lengths - nonce_len);
    return bits >= 64 ? most_text_len : (std::uint64_t{1} << bits) - 1;
  }
};

struct ModeInput {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::size_t len;
  const std::uint8_t* iv = nullptr;
  std::size_t iv_len = 0;
  const std::uint8_t* aad = nullptr;
  std::size_t aad_len = 0;
  std::uint8_t* tag = nullptr;  // only AEADs: written by encrypt, compared by decrypt
  std::size_t tag_len = 0;
  bool is_part = false;  // Poly1305: as in Message, with first_block
  std::uint32_t first_block = 0;
};

}  // namespace warpcipher
