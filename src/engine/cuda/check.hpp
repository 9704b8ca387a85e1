// SPDX-License-Identifier: Apache-2.0
// Turns errors of the CUDA runtime into warpcipher::Error. Text is built only when something failed.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/error.hpp"

namespace warpcipher::cuda {

[[noreturn]] inline void throw_error(cudaError_t error, const std::string& doing) {
  cudaGetLastError();  // forgets an error that is not sticky, so that the next call does not report it again
  std::string text =
      "CUDA failed to " + doing + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorUnsupportedPtxVersion) {
    text += "; this build of warpcipher has no code for this GPU or driver";
  }
  throw Error(error == cudaErrorMemoryAllocation ? Status::out_of_memory : Status::engine_failure, text);
}

// `doing` completes "CUDA failed to ...".
inline void check(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) throw_error(error, doing);
}

}  // namespace warpcipher::cuda
