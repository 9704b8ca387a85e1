// SPDX-License-Identifier: Apache-2.0
// Data units of XTS of one key and length that lie in a row, as do their IVs: sectors of a disk image. The first and
// their number tell of all, so that the host lists none: the GPU makes their views.
#pragma once

#include <cstddef>

#include "batch/message.hpp"
#include "engine/cuda/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// Runs `count` of them, of which `first` is the first. The IVs, in host memory, are read until the stream has passed.
void run_sectors(const Device& device, const Message& first, std::size_t count, Stream stream);

}  // namespace warpcipher::cuda
