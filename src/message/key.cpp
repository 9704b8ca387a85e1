// SPDX-License-Identifier: Apache-2.0
#include "message/key.hpp"

#include <random>
#include <string>

#include "cipher/aes.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"

namespace warpcipher {
namespace {

std::array<std::uint8_t, 16> random_block() {
  std::random_device random;
  std::array<std::uint8_t, 16> block;
  for (std::size_t i = 0; i < block.size(); i += 4) store_le32(block.data() + i, random());
  return block;
}

}  // namespace

Key::Key(const Algorithm& algorithm, std::span<const std::uint8_t> bytes) : algorithm_(algorithm) {
  if (bytes.size() != algorithm.key_len()) {
    refuse(algorithm.name, " takes a key of ", algorithm.key_len(), " bytes, got ", bytes.size());
  }
  if (algorithm.mode.two_keys) {
    const std::size_t half = bytes.size() / 2;
    if (equal_constant_time(bytes.data(), bytes.data() + half, half)) {
      refuse(algorithm.name, ": the two halves of the key are equal; XTS takes two different keys");
    }
  }
  bytes_ = SecretBytes(bytes);
}

const std::array<std::uint8_t, 16>& Key::fingerprint() const {
  fingerprint_once_.call([&] {
    static constinit FirstUse<std::array<std::uint8_t, 16>> block;
    const Secret schedule(aes::expand_key(bytes_.data(), algorithm_.cipher.key_len));
    aes::encrypt_block(*schedule, block.get(random_block).data(), fingerprint_.data());
  });
  return fingerprint_;
}

}  // namespace warpcipher
