// SPDX-License-Identifier: Apache-2.0
// Lists of copies between device memory and page-locked memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpcipher {

// An entry of a list. A device performs the copy, and reads this layout; or the cores of the host do.
struct DeviceCopy {
  void* to;
  const void* from;
  std::size_t len;
};

// How much of the link a kernel uses that performs the copies of a list.
enum class Pace : std::uint8_t {
  full,
  gentle,  // leaves most of the link to a copy engine that moves texts the other way at the same time
};

}  // namespace warpcipher
