// SPDX-License-Identifier: Apache-2.0
// Counter blocks as the columns that T-boxes take.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace warpcipher::lab {

// The block `distance` blocks after `counter`: a big-endian number of 128 bits that wraps. Both are columns in
// the layout of cipher/aes_tables.hpp.
__device__ __forceinline__ uint4 counter_behind(const std::uint32_t (&counter)[4], std::uint64_t distance) {
  const auto swap = [](std::uint32_t x) { return __byte_perm(x, 0, 0x0123); };
  const std::uint64_t before = std::uint64_t{swap(counter[2])} << 32 | swap(counter[3]);
  const std::uint64_t low = before + distance;
  const std::uint64_t high =
      (std::uint64_t{swap(counter[0])} << 32 | swap(counter[1])) + (low < before ? std::uint64_t{1} : 0);
  return make_uint4(swap(static_cast<std::uint32_t>(high >> 32)), swap(static_cast<std::uint32_t>(high)),
                    swap(static_cast<std::uint32_t>(low >> 32)), swap(static_cast<std::uint32_t>(low)));
}

__device__ __forceinline__ uint4 sum(const uint4& a, const uint4& b) {
  return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

}  // namespace warpcipher::lab
