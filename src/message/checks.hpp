// SPDX-License-Identifier: Apache-2.0
// The check that a batch never encrypts twice with the same key and nonce.
#pragma once

#include <span>
#include <string>

#include "message/message.hpp"

namespace warpcipher {

// SP 800-38D, section 8, and RFC 8439, section 4: a nonce used twice under one key reveals the key stream, and lets
// others forge tags. Throws Error{invalid_argument} that names the two messages when a batch would do so with an AEAD.
// GCM-SIV may repeat nonces (RFC 8452, section 9). Every message must have passed its own checks. The time is
// proportional to the number of messages, even if an attacker chose the nonces.
void check_nonces(std::span<const Message> messages);

// Whether no other message may have the nonce of this one, under the same key.
bool needs_own_nonce(const Message& message);

// The end of an error: why a nonce must not repeat.
std::string repeated_nonce_rule(const Algorithm& algorithm);

// --- The check that messages of a batch do not disturb each other: they run in any order, at the same time.
// Throws Error{invalid_argument} that names the two messages when one writes (text or tag) where another reads or
// writes. Reading the same bytes is allowed. message.cpp checks the buffers of one message against each other.
void check_overlap_between(std::span<const Message> messages);

}  // namespace warpcipher
