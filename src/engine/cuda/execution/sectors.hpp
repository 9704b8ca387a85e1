// SPDX-License-Identifier: Apache-2.0
// Data units of XTS of one key and length that follow each other, as do their IVs: sectors of a disk image. The first
// one and their number describe all, so the host lists none. They run as a columnar batch that is known to be correct.
#pragma once

#include <cstddef>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher {
struct Message;
}

namespace warpcipher::cuda {

// DeviceEngine::run_sectors(). The IVs, in host memory, are read until the stream has passed.
void run_sectors(const Device& device, const Message& first, std::size_t count, Stream stream);

}  // namespace warpcipher::cuda
