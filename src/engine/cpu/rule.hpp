// SPDX-License-Identifier: Apache-2.0
// Which code takes a text on this processor, own code or libcrypto: a fixed rule for each instruction set, so that two
// runs take the same.
#pragma once

#include <cstddef>

#include "engine/device_engine.hpp"
#include "message/message.hpp"

namespace warpcipher {

struct CodeRule {
  bool own;
  const char* reason;
};

// For a text of `len` bytes; of an AEAD, AAD included.
CodeRule code_rule(const Algorithm& algorithm, Direction direction, std::size_t len);

// The rule and its reason, for people.
Decision explain_cpu(const Algorithm& algorithm, Direction direction, std::size_t len);

}  // namespace warpcipher
