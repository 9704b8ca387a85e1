// SPDX-License-Identifier: Apache-2.0
// A GPU as the choice of kernels sees it. A small header for kernel files, which compile slowly (docs/building.md).
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace warpcipher::cuda
