// SPDX-License-Identifier: Apache-2.0
// Copies between device memory and page-locked memory that are listed rather than made one by one.
#pragma once

#include <cstddef>

namespace warpcipher {

// A copy of a list, also as a device reads it.
struct DeviceCopy {
  void* to;
  const void* from;
  std::size_t len;
};

}  // namespace warpcipher
