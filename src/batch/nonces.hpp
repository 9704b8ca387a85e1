// SPDX-License-Identifier: Apache-2.0
// The check that a batch never encrypts twice with the same key and nonce.
#pragma once

#include <span>

#include "batch/message.hpp"

namespace warpcipher {

// SP 800-38D, section 8: a nonce used twice under one key gives the key stream and the hash key away. Throws
// Error{invalid_argument} that names the two messages when a batch would do so with an AEAD. Every message has passed
// its own checks. Takes time in proportion to the messages, whoever chose the nonces.
void check_nonces(std::span<const Message> messages);

}  // namespace warpcipher
