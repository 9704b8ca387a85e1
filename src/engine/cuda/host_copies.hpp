// SPDX-License-Identifier: Apache-2.0
// Many short copies between device memory and page-locked host memory in one launch. A copy engine needs about 3 us for
// each copy, a launch of its own each; a kernel's loads and stores go over the link at its full rate (H200: 48 and
// 50 GB/s, 28 to 37 at the same time).
#pragma once

#include <cstddef>

#include "engine/device_copy.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// copies: device memory.
void copy_many(const DeviceCopy* copies, std::size_t count, Stream stream);

}  // namespace warpcipher::cuda
