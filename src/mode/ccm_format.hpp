// SPDX-License-Identifier: Apache-2.0
// The blocks that CCM makes of a message besides its text: SP 800-38C, appendix A. For host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/host_device.hpp"
#include "mode/limits.hpp"

namespace warpcipher {

// Before the first byte of associated data stands its length, in 2, 6 or 10 bytes (section A.2.2).
inline constexpr std::size_t ccm_most_head_len = 10;

// B0 (section A.2.1):
//
//   byte     0                                          1 .. n   16-q .. 15
//            64 (aad_len > 0) + 8 (t - 2) / 2 + q - 1   nonce    text_len, big-endian         n + q = 15, t = tag_len
WARPCIPHER_HD constexpr void ccm_first_block(const std::uint8_t* nonce, std::size_t nonce_len, std::uint64_t aad_len,
                                      std::uint64_t text_len, std::size_t tag_len, std::uint8_t block[16]) {
  block[0] = static_cast<std::uint8_t>((aad_len != 0 ? 64 : 0) + 4 * (tag_len - 2) + ccm_lengths_len - nonce_len - 1);
  for (std::size_t i = 0; i < nonce_len; ++i) block[1 + i] = nonce[i];
  for (std::size_t i = 15; i > nonce_len; --i, text_len >>= 8) block[i] = static_cast<std::uint8_t>(text_len);
}

// Ctr0 (section A.3): q - 1, the nonce, and a counter of q bytes that is 0.
WARPCIPHER_HD constexpr void ccm_counter(const std::uint8_t* nonce, std::size_t nonce_len, std::uint8_t block[16]) {
  block[0] = static_cast<std::uint8_t>(ccm_lengths_len - nonce_len - 1);
  for (std::size_t i = 0; i < 15; ++i) block[1 + i] = i < nonce_len ? nonce[i] : std::uint8_t{0};
}

// Writes the bytes before `aad_len` > 0 bytes of associated data; returns its length.
WARPCIPHER_HD constexpr std::size_t ccm_aad_head(std::uint64_t aad_len, std::uint8_t head[ccm_most_head_len]) {
  const std::size_t bytes = aad_len < 0xff00 ? 2 : aad_len >> 32 == 0 ? 4 : 8;
  const std::size_t mark = bytes == 2 ? 0 : 2;
  if (mark != 0) {
    head[0] = 0xff;
    head[1] = bytes == 4 ? 0xfe : 0xff;
  }
  for (std::size_t i = mark + bytes; i > mark; --i, aad_len >>= 8) head[i - 1] = static_cast<std::uint8_t>(aad_len);
  return mark + bytes;
}

}  // namespace warpcipher
