// SPDX-License-Identifier: Apache-2.0
// What becomes of the tag that an engine of the host, or src/transfer, has computed of an AEAD message.
#pragma once

#include <cstring>

#include "batch/message.hpp"
#include "core/bytes.hpp"

namespace warpcipher {

// Writes the tag (16 bytes) where it is wanted, or compares it in constant time with the one that came. False when that
// does not match: then the text must be wiped.
[[nodiscard]] inline bool settle_tag(const Message& message, const std::uint8_t* tag) {
  if (message.direction == Direction::decrypt && !message.compute_tag) {
    return equal_constant_time(tag, message.tag, message.tag_len);
  }
  std::memcpy(message.tag, tag, message.tag_len);
  return true;
}

}  // namespace warpcipher
