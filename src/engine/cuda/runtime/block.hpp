// SPDX-License-Identifier: Apache-2.0
// A 128-bit block, on host and device.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace warpcipher::cuda {

// Words as a little-endian machine loads them: byte i of the block is byte i % 4 of words[i / 4].
struct alignas(16) Block {
  std::uint32_t words[4];
};

WARPCIPHER_HD inline Block operator^(const Block& a, const Block& b) {
  return {{a.words[0] ^ b.words[0], a.words[1] ^ b.words[1], a.words[2] ^ b.words[2], a.words[3] ^ b.words[3]}};
}

}  // namespace warpcipher::cuda
