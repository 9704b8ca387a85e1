// SPDX-License-Identifier: Apache-2.0
// Byte order and small byte-string helpers, the same on host and device. Pointers may have any alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/host_device.hpp"

namespace warpcipher {

WARPCIPHER_HD constexpr std::uint32_t load_be32(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | std::uint32_t{p[3]};
}

WARPCIPHER_HD constexpr void store_be32(std::uint8_t* p, std::uint32_t v) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(v >> (24 - 8 * i));
}

WARPCIPHER_HD constexpr std::uint32_t load_le32(const std::uint8_t* p) {
  return std::uint32_t{p[3]} << 24 | std::uint32_t{p[2]} << 16 | std::uint32_t{p[1]} << 8 | std::uint32_t{p[0]};
}

WARPCIPHER_HD constexpr void store_le32(std::uint8_t* p, std::uint32_t v) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(v >> (8 * i));
}

WARPCIPHER_HD constexpr std::uint64_t load_be64(const std::uint8_t* p) {
  return std::uint64_t{load_be32(p)} << 32 | load_be32(p + 4);
}

WARPCIPHER_HD constexpr void store_be64(std::uint8_t* p, std::uint64_t v) {
  store_be32(p, static_cast<std::uint32_t>(v >> 32));
  store_be32(p + 4, static_cast<std::uint32_t>(v));
}

WARPCIPHER_HD constexpr std::uint64_t load_le64(const std::uint8_t* p) {
  return std::uint64_t{load_le32(p + 4)} << 32 | load_le32(p);
}

WARPCIPHER_HD constexpr void store_le64(std::uint8_t* p, std::uint64_t v) {
  store_le32(p, static_cast<std::uint32_t>(v));
  store_le32(p + 4, static_cast<std::uint32_t>(v >> 32));
}

// On a GPU PRMT: nvcc makes four instructions of the shifts.
WARPCIPHER_HD constexpr std::uint32_t byte_swap32(std::uint32_t v) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint32_t swapped;
    asm("prmt.b32 %0, %1, 0, 0x0123;" : "=r"(swapped) : "r"(v));
    return swapped;
  }
#endif
  return v << 24 | (v & 0xff00u) << 8 | (v >> 8 & 0xff00u) | v >> 24;
}

// out = a ^ b over n bytes; any of the three may be the same buffer.
WARPCIPHER_HD constexpr void xor_bytes(std::uint8_t* out, const std::uint8_t* a, const std::uint8_t* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(a[i] ^ b[i]);
}

// Adds n to a 128-bit big-endian counter modulo 2^128 (SP 800-38A, appendix B.1, whole block as counter).
WARPCIPHER_HD constexpr void add_be128(std::uint8_t counter[16], std::uint64_t n) {
  const std::uint64_t low = load_be64(counter + 8);
  const std::uint64_t sum = low + n;
  store_be64(counter + 8, sum);
  if (sum < low) store_be64(counter, load_be64(counter) + 1);
}

// Adds n to the low 32 bits of a big-endian block modulo 2^32 (inc32 of SP 800-38D, section 6.2, n times).
WARPCIPHER_HD constexpr void add_be32(std::uint8_t counter[16], std::uint32_t n) {
  store_be32(counter + 12, load_be32(counter + 12) + n);
}

// True when a and b hold the same n bytes; the time depends only on n.
WARPCIPHER_HD constexpr bool equal_constant_time(const std::uint8_t* a, const std::uint8_t* b, std::size_t n) {
  std::uint32_t difference = 0;
  for (std::size_t i = 0; i < n; ++i) difference |= static_cast<std::uint32_t>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace warpcipher
