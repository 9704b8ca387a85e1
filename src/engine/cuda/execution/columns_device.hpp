// SPDX-License-Identifier: Apache-2.0
// Which device a columnar batch is for.
#pragma once

#include "engine/cuda/runtime/gpu.hpp"
#include "message/columns.hpp"

namespace warpcipher::cuda {

// The device of all arrays that are said to lie in device memory. Throws Error{invalid_argument} if one does not, or if
// they lie on several devices.
const Device& device_of(const Columns& columns);

}  // namespace warpcipher::cuda
