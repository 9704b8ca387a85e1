// SPDX-License-Identifier: Apache-2.0
// A host engine's, or src/flow's, use of the tag that it has computed for an AEAD message.
#pragma once

#include <cstring>

#include "core/bytes.hpp"
#include "core/wipe.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Encryption: writes the tag (16 bytes). Decryption: compares it in constant time with the given one. False when they
// differ: then the caller must wipe the text.
[[nodiscard]] inline bool settle_tag(const Message& message, const std::uint8_t* tag) {
  if (message.direction == Direction::decrypt && !message.compute_tag) {
    return equal_constant_time(tag, message.tag, message.tag_len);
  }
  std::memcpy(message.tag, tag, message.tag_len);
  return true;
}

// Wipes the text where the tag does not match.
[[nodiscard]] inline Status settle(const Message& message, const std::uint8_t* tag) {
  if (settle_tag(message, tag)) return Status::ok;
  secure_wipe(message.out, message.in_len);
  return Status::invalid_tag;
}

}  // namespace warpcipher
