// SPDX-License-Identifier: Apache-2.0
// Lengths that the standards allow, in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcipher {

// Tags of that many bytes, as a bit of ModeInfo::tag_lens.
constexpr std::uint32_t tag_len_bit(std::size_t len) { return len < 32 ? std::uint32_t{1} << len : 0; }

inline constexpr std::size_t full_tag_len = 16;

// SP 800-38D, section 5.2.1.1: plaintext of at most 2^39 - 256 bits. Section 5.2.1.2: tags of 128 to 96 bits, and for
// some uses 64 and 32.
inline constexpr std::uint64_t gcm_most_text_len = (std::uint64_t{1} << 36) - 32;
inline constexpr std::uint32_t gcm_tag_lens = tag_len_bit(4) | tag_len_bit(8) | tag_len_bit(12) | tag_len_bit(13) |
                                              tag_len_bit(14) | tag_len_bit(15) | tag_len_bit(16);
constexpr bool is_gcm_tag_len(std::size_t len) { return (gcm_tag_lens & tag_len_bit(len)) != 0; }

// Section 7.1, step 2: an IV of 96 bits is J0 but for its last word. All others are hashed.
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

}  // namespace warpcipher
