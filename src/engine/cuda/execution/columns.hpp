// SPDX-License-Identifier: Apache-2.0
// Columnar batches, planned and run on the GPU: the host does nothing for each message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/cuda/runtime/conditions.hpp"
#include "engine/engine.hpp"
#include "message/columns.hpp"

namespace warpcipher::cuda {

// DeviceEngine::least_columns(): whether the GPU plans columns, or the host makes messages of them. Forcing `columns`
// forces one way for all batches.
constexpr std::size_t least_columns(const Overrides& overrides) {
  if (overrides.columns == ForcedColumns::none) return 512;  // for fewer, the host is faster than the launches
  return overrides.columns == ForcedColumns::device ? 1 : SIZE_MAX;
}

// DeviceEngine::run_columns().
std::optional<Status> run_columns(const Columns& columns, std::span<Result> results, Stream stream);

}  // namespace warpcipher::cuda
