// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/check.hpp"

#include <string>

#include "core/error.hpp"

namespace warpcipher::cuda {

void throw_failure(const char* text) { throw Error(Status::engine_failure, text); }

void throw_error(cudaError_t error, const char* doing) {
  cudaGetLastError();  // clears an error that is not sticky, so that the next call does not report it again
  std::string text =
      std::string("CUDA failed to ") + doing + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorUnsupportedPtxVersion) {
    text += "; this build of warpcipher has no code for this GPU or driver";
  }
  throw Error(error == cudaErrorMemoryAllocation ? Status::out_of_memory : Status::engine_failure, text);
}

}  // namespace warpcipher::cuda
