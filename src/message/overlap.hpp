// SPDX-License-Identifier: Apache-2.0
// The check that messages of a batch do not disturb each other: they run in any order, at the same time.
#pragma once

#include <span>

#include "message/message.hpp"

namespace warpcipher {

// Throws Error{invalid_argument} that names the two messages when one writes (text or tag) where another reads or
// writes. Reading the same bytes is allowed. message.cpp checks the buffers of one message against each other.
void check_overlap_between(std::span<const Message> messages);

}  // namespace warpcipher
