// SPDX-License-Identifier: Apache-2.0
// Many short copies from device memory to page-locked host memory in one launch. A copy engine needs about 3 us for
// each copy, a launch of its own each; a kernel's stores go over the link at its full rate (H200: 50 GB/s).
#pragma once

#include <cstddef>

#include "engine/device_engine.hpp"

namespace warpcipher::cuda {

// copies: device memory.
void copy_many_to_host(const DeviceCopy* copies, std::size_t count, Stream stream);

}  // namespace warpcipher::cuda
