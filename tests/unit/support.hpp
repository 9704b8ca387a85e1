// SPDX-License-Identifier: Apache-2.0
// Shared by several unit tests: reproducible random bytes, and a message with buffers of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "message/message.hpp"

namespace warpcipher::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes random_bytes(std::mt19937& random, std::size_t len) {
  Bytes bytes(len);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// The nearest length to `len` that the algorithm takes without padding.
inline std::size_t valid_len(const Algorithm& algorithm, std::size_t len) {
  if (algorithm.mode.whole_blocks) return len / algorithm.block_len() * algorithm.block_len();
  return algorithm.mode.id == Mode::xts ? std::max<std::size_t>(len, 16) : len;
}

// A message of random content. `message` points into the other members; `guard` bytes after out must stay as they are.
struct Sample {
  static constexpr std::size_t guard = 32;
  static constexpr std::uint8_t guard_byte = 0xa7;

  Sample(std::mt19937& random, const Algorithm& algorithm, Direction direction, std::size_t len,
         Padding padding = Padding::none)
      : key(std::make_unique<Key>(algorithm, random_bytes(random, algorithm.key_len()))),
        in(random_bytes(random, len)),
        out(len + 16 + guard, guard_byte),
        tag(algorithm.is_aead() ? 16 : 0) {
    iv = random_bytes(random, algorithm.iv_len);
    if (algorithm.mode.id == Mode::stream) iv[3] &= 0x7f;  // far from the end of its counter
    if (algorithm.is_aead()) aad = random_bytes(random, random() % 40);
    message.key = key.get();
    message.direction = direction;
    message.padding = padding;
    message.in = in.data();
    message.in_len = len;
    message.out = out.data();
    message.out_len = len + 16;
    message.iv = iv.data();
    message.iv_len = iv.size();
    message.aad = aad.data();
    message.aad_len = aad.size();
    message.tag = tag.data();
    message.tag_len = tag.size();
  }
  Sample(Sample&&) = default;

  // Makes it an in-place message.
  void alias() {
    std::copy(in.begin(), in.end(), out.begin());
    message.in = out.data();
  }

  bool guard_intact() const {
    for (std::size_t i = message.output_len(); i < out.size(); ++i) {
      if (i >= message.in_len + 16 && out[i] != guard_byte) return false;
    }
    return true;
  }

  std::unique_ptr<Key> key;
  Bytes in, out, iv, aad, tag;
  Message message;
};

}  // namespace warpcipher::test
