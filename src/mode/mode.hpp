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

#include "core/host_device.hpp"

namespace warpcipher {

enum class Mode : std::uint8_t { ecb, cbc, cfb, cfb8, ofb, ctr, gcm, xts, gcm_siv, stream, poly1305, ccm };

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
  bool steals = false;                 // a short last block takes ciphertext of the one before it: both are one unit
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

// Lengths that the standards allow, in bytes.

// Tags of that many bytes, as a bit of ModeInfo::tag_lens.
constexpr std::uint32_t tag_len_bit(std::size_t len) { return len < 32 ? std::uint32_t{1} << len : 0; }

inline constexpr std::size_t full_tag_len = 16;

// SP 800-38D, section 5.2.1.1: plaintext of at most 2^39 - 256 bits. Section 5.2.1.2: tags of 128 to 96 bits, and for
// some uses 64 and 32.
inline constexpr std::uint64_t gcm_most_text_len = (std::uint64_t{1} << 36) - 32;
inline constexpr std::uint32_t gcm_tag_lens = tag_len_bit(4) | tag_len_bit(8) | tag_len_bit(12) | tag_len_bit(13) |
                                              tag_len_bit(14) | tag_len_bit(15) | tag_len_bit(16);
constexpr bool is_gcm_tag_len(std::size_t len) { return (gcm_tag_lens & tag_len_bit(len)) != 0; }

// Section 7.1, step 2: an IV of 96 bits is J0 except for its last word. All others are hashed.
inline constexpr std::size_t gcm_plain_iv_len = 12;

// SP 800-38C, section A.1: lengths of tags; the nonce and the length of the text have 15 bytes together.
inline constexpr std::uint32_t ccm_tag_lens = tag_len_bit(4) | tag_len_bit(6) | tag_len_bit(8) | tag_len_bit(10) |
                                              tag_len_bit(12) | tag_len_bit(14) | tag_len_bit(16);
inline constexpr std::size_t ccm_lengths_len = 15;

// RFC 8452, section 6: text and additional data of at most 2^36 bytes. Section 4: nonces of 96 bits.
inline constexpr std::uint64_t gcm_siv_most_len = std::uint64_t{1} << 36;
inline constexpr std::size_t gcm_siv_nonce_len = 12;

// IEEE 1619, section 5.1: a data unit has at most 2^20 blocks. It has at least one, which ciphertext stealing needs.
inline constexpr std::uint64_t xts_most_text_len = std::uint64_t{16} << 20;
inline constexpr std::uint64_t xts_least_text_len = 16;

// RFC 8439, section 2.3: blocks of key stream are numbered with 32 bits.
inline constexpr std::uint64_t chacha_block_len = 64;
inline constexpr std::uint64_t chacha_most_blocks = std::uint64_t{1} << 32;
// Section 2.8: block 0 is the key of Poly1305, and the text takes those after it.
inline constexpr std::uint64_t chacha_poly1305_most_text_len = chacha_block_len * (chacha_most_blocks - 1);
inline constexpr std::size_t chacha_nonce_len = 12;
// draft-irtf-cfrg-xchacha-03, section 2: 16 bytes for HChaCha20, 8 for the nonce of ChaCha20.
inline constexpr std::size_t xchacha_nonce_len = 24;
// ChaCha20 by itself: a counter of 4 bytes, and the nonce.
inline constexpr std::size_t chacha_iv_len = 16;

// PKCS#7 padding, the same on host and device.

// Bytes of a text and its PKCS#7 padding (RFC 5652, section 6.3). block_len: a power of two; text_len:
// at most 2^64 - 1 - block_len, which check_messages() sees to.
WARPCIPHER_HD constexpr std::uint64_t padded_len(std::uint64_t text_len, std::uint64_t block_len) {
  return (text_len | (block_len - 1)) + 1;
}

// Bytes that the cipher makes of a text; a tag comes in addition. pads: PKCS#7 padding is added.
WARPCIPHER_HD constexpr std::uint64_t output_len(std::uint64_t text_len, bool pads, std::uint64_t block_len) {
  return pads ? padded_len(text_len, block_len) : text_len;
}

}  // namespace warpcipher
