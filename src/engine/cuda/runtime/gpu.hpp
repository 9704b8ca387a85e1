// SPDX-License-Identifier: Apache-2.0
// A GPU as the choice of kernels sees it. A small header for kernel files, which compile slowly (docs/building.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/host_device.hpp"

namespace warpcipher::cuda {

// The facts that the choice of kernels depends on.
struct Device {
  int index;           // as cudaSetDevice takes it
  char name[256];      // as cudaDeviceProp has it, for people
  std::size_t memory;  // bytes
  int major;           // compute capability
  int minor;
  std::uint32_t multiprocessors;
  std::size_t shared_len;  // bytes of shared memory a block may ask for
};

// A 128-bit block, on host and device.

// Words as a little-endian machine loads them: byte i of the block is byte i % 4 of words[i / 4].
struct alignas(16) Block {
  std::uint32_t words[4];
};

WARPCIPHER_HD inline Block operator^(const Block& a, const Block& b) {
  return {{a.words[0] ^ b.words[0], a.words[1] ^ b.words[1], a.words[2] ^ b.words[2], a.words[3] ^ b.words[3]}};
}

}  // namespace warpcipher::cuda
