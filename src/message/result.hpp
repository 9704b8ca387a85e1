// SPDX-License-Identifier: Apache-2.0
// The result of a message.
#pragma once

#include <cstddef>

#include "core/status.hpp"

namespace warpcipher {

struct Result {
  Status status = Status::ok;  // ok, invalid_tag or invalid_padding
  std::size_t written = 0;     // bytes of text at out; 0 when status is not ok
};

}  // namespace warpcipher
