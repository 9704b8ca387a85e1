// SPDX-License-Identifier: Apache-2.0
#include "batch/key.hpp"

#include <string>

#include "core/bytes.hpp"
#include "core/error.hpp"

namespace warpcipher {

Key::Key(const Algorithm& algorithm, std::span<const std::uint8_t> bytes) : algorithm_(algorithm) {
  if (bytes.size() != algorithm.key_len()) {
    throw Error(Status::invalid_argument, std::string(algorithm.name) + " takes a key of " +
                                              std::to_string(algorithm.key_len()) + " bytes, got " +
                                              std::to_string(bytes.size()));
  }
  if (algorithm.mode.id == Mode::xts) {
    const std::size_t half = bytes.size() / 2;
    if (equal_constant_time(bytes.data(), bytes.data() + half, half)) {
      throw Error(Status::invalid_argument,
                  std::string(algorithm.name) + ": the two halves of the key are equal; XTS takes two different keys");
    }
  }
  bytes_ = SecretBytes(bytes);
}

}  // namespace warpcipher
