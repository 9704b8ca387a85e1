// SPDX-License-Identifier: Apache-2.0
// A GPU as the choice of kernels sees it: for the headers that kernels include, which leave out what takes a compiler
// long (docs/building.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcipher::cuda {

// What the choice of kernels depends on.
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
