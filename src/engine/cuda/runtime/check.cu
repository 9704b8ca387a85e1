// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/check.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>

#include "core/error.hpp"
#include "engine/cuda/runtime/launch.hpp"

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

void reserve_shared_memory(const void* kernel, std::size_t len) {
  struct Limit {
    const void* kernel;
    int device;
    std::size_t len;
  };
  static constinit std::mutex mutex;
  static constinit std::array<Limit, 1024> limits{};
  int device = 0;
  check(cudaGetDevice(&device), "find the current device");
  const std::lock_guard lock(mutex);
  const auto limit = std::find_if(limits.begin(), limits.end(), [&](const Limit& l) {
    return l.kernel == nullptr || (l.kernel == kernel && l.device == device);
  });
  if (limit != limits.end() && limit->kernel != nullptr && len <= limit->len) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(len)),
        "reserve shared memory for a kernel");
  if (limit != limits.end()) *limit = {kernel, device, len};
}

}  // namespace warpcipher::cuda
