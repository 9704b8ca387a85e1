// SPDX-License-Identifier: Apache-2.0
// A stream as the CUDA runtime takes it.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/stream.hpp"

namespace warpcipher::cuda {

inline cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace warpcipher::cuda
