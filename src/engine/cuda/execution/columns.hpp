// SPDX-License-Identifier: Apache-2.0
// Columnar batches, planned and run on the GPU: the host does nothing for each message.
#pragma once

#include <optional>
#include <span>

#include "engine/engine.hpp"
#include "message/columns.hpp"

namespace warpcipher::cuda {

// DeviceEngine::run_columns().
std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream);

}  // namespace warpcipher::cuda
