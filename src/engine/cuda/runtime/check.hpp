// SPDX-License-Identifier: Apache-2.0
// Turns errors of the CUDA runtime into warpcipher::Error. Text is built only when something failed.
#pragma once

#include <cuda_runtime_api.h>

namespace warpcipher::cuda {

// Throws Error{engine_failure}: for where a kernel is launched, which would have to compile <string> otherwise.
[[noreturn]] void throw_failure(const char* text);

// `doing` completes "CUDA failed to ...".
[[noreturn]] void throw_error(cudaError_t error, const char* doing);

inline void check(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) throw_error(error, doing);
}

}  // namespace warpcipher::cuda
