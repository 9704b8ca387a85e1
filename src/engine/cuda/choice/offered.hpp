// SPDX-License-Identifier: Apache-2.0
// The algorithms that have kernels.
#pragma once

#include "mode/algorithm.hpp"

namespace warpcipher::cuda {

// All but GCM-SIV.
constexpr bool has_kernels(const Algorithm& algorithm) { return algorithm.mode.id != Mode::gcm_siv; }

}  // namespace warpcipher::cuda
