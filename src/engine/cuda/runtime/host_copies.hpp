// SPDX-License-Identifier: Apache-2.0
// Many copies between device memory and page-locked host memory at once. A copy engine needs 3 us for each copy that is
// its own call, but not for the copies of a batch. H200: ranges of 64 KiB and more to the device move at 53 GB/s, and
// at 45 GB/s while a kernel stores results to the host; shorter ranges cost the host 1 to 8 us each. A kernel moves any
// copies at 48 GB/s (loads) and 50 GB/s (stores), but at 28 to 37 GB/s when both run at the same time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "engine/device_engine.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// By copy engines, in any order.
void copy_all(std::span<const DeviceCopy> copies, cudaMemcpyKind kind, Stream stream);

// By a kernel. copies: device memory.
void copy_many(const DeviceCopy* copies, std::size_t count, Pace pace, Stream stream);

}  // namespace warpcipher::cuda
