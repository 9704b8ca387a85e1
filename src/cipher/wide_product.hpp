// SPDX-License-Identifier: Apache-2.0
// The product of two words as a number of 64 bits: on a GPU, one instruction.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/host_device.hpp"

namespace warpcipher {

// nvcc widens plain products of 32 bits to 64 bits and adds the zeros of their upper halves: a quarter of GHASH and of
// Poly1305.
WARPCIPHER_INLINE constexpr std::uint64_t wide_product(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint64_t product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
  }
#endif
  return std::uint64_t{a} * b;
}

}  // namespace warpcipher
