// SPDX-License-Identifier: Apache-2.0
// Short copies between device memory and page-locked memory.
#pragma once

#include <cstddef>

namespace warpcipher {

// A copy for copy_many(), as a device reads it.
struct DeviceCopy {
  void* to;
  const void* from;
  std::size_t len;
};

}  // namespace warpcipher
