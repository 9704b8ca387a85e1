// SPDX-License-Identifier: Apache-2.0
// PKCS#7 padding, the same on host and device.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace warpcipher {

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
