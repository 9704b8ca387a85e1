// SPDX-License-Identifier: Apache-2.0
// The algorithms that have kernels.
#pragma once

#include "mode/algorithm.hpp"

namespace warpcipher::cuda {

// All.
constexpr bool has_kernels(const Algorithm&) { return true; }

}  // namespace warpcipher::cuda
