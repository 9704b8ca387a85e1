// SPDX-License-Identifier: Apache-2.0
// Whether the GPU checks and plans columns, or the host makes messages of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/runtime/overrides.hpp"

namespace warpcipher::cuda {

// DeviceEngine::least_columns(). WARPCIPHER_COLUMNS forces one way for all batches.
constexpr std::size_t least_columns(const Overrides& overrides) {
  if (overrides.columns == ForcedColumns::none) return 512;  // for fewer, the host is faster than the launches
  return overrides.columns == ForcedColumns::device ? 1 : SIZE_MAX;
}

}  // namespace warpcipher::cuda
