// SPDX-License-Identifier: Apache-2.0
// Turns errors of the CUDA runtime into warpcipher::Error. Builds text only for a failure.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/stream.hpp"

namespace warpcipher::cuda {

// Throws Error{engine_failure}. For files with kernels, which need not include <string> then.
[[noreturn]] void throw_failure(const char* text);

// `doing` completes "CUDA failed to ...".
[[noreturn]] void throw_error(cudaError_t error, const char* doing);

inline void check(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) throw_error(error, doing);
}

// --- A stream as the CUDA runtime takes it.
inline cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace warpcipher::cuda
