// SPDX-License-Identifier: Apache-2.0
// Copies between device memory and page-locked memory that are listed rather than made one by one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcipher {

// A copy of a list, made by a device, which reads it so, or by the cores of the host.
struct DeviceCopy {
  void* to;
  const void* from;
  std::size_t len;
};

// How much of the link a kernel takes that makes the copies of a list.
enum class Pace : std::uint8_t {
  full,
  gentle,  // what leaves the most to a copy engine that moves texts the other way meanwhile
};

}  // namespace warpcipher
