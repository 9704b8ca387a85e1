// SPDX-License-Identifier: Apache-2.0
// Columnar batches, planned and run on the GPU: the host does nothing for each message.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "batch/columns.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/engine.hpp"

namespace warpcipher::cuda {

// DeviceEngine::least_columns(). WARPCIPHER_COLUMNS ("device" or "host") forces one way for all batches, for tests and
// measurements.
std::size_t least_columns();

// DeviceEngine::run_columns().
std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream);

// DeviceEngine::run_sectors(): the first data unit and their number tell of all, so that the host lists none.
void run_sectors(const Device& device, const Message& first, std::size_t count, Stream stream);

}  // namespace warpcipher::cuda
