// SPDX-License-Identifier: Apache-2.0
// The check that a batch never encrypts twice with the same key and nonce.
#pragma once

#include <span>

#include "batch/message.hpp"

namespace warpcipher {

// SP 800-38D, section 8: a nonce used twice under one key reveals the key stream and the hash key. Throws
// Error{invalid_argument} that names the two messages when a batch would do so with an AEAD. Every message must have
// passed its own checks. The time is proportional to the number of messages, even if an attacker chose the nonces.
void check_nonces(std::span<const Message> messages);

}  // namespace warpcipher
