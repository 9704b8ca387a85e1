// SPDX-License-Identifier: Apache-2.0
// Random bytes of the operating system: for keys, salts and nonces.
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/error.hpp"

namespace warpcipher {

// Throws Error{engine_failure}.
inline void fill_from_system(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(Status::engine_failure, "the operating system gives no random bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace warpcipher
