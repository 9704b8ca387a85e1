// SPDX-License-Identifier: Apache-2.0
// Starting kernels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

struct LaunchConfiguration {
  std::uint32_t blocks;
  std::uint32_t threads;
  std::size_t shared_len = 0;  // dynamic shared memory, bytes
};

// Enough blocks of `threads` threads for all lanes, up to a limit for each multiprocessor: kernels loop over the rest.
inline LaunchConfiguration configuration_of_lanes(const Device& device, std::uint64_t lanes, std::uint32_t threads,
                                                  std::uint32_t most_of_multiprocessor) {
  const std::uint64_t wanted = (lanes + threads - 1) / threads;
  const std::uint64_t most = std::uint64_t{most_of_multiprocessor} * device.multiprocessors;
  return {static_cast<std::uint32_t>(wanted < most ? wanted : most), threads};
}

// Lets a kernel have as much dynamic shared memory on the current device. Each thread asks the driver once, which takes
// as long for it as for a launch.
inline void reserve_shared_memory(const void* kernel, std::size_t len) {
  struct Reserved {
    const void* kernel;
    int device;
    std::size_t len;
  };
  thread_local std::vector<Reserved> reserved;
  int device = 0;
  check(cudaGetDevice(&device), "find the current device");
  const auto is_of_kernel = [&](const Reserved& r) { return r.kernel == kernel && r.device == device; };
  const auto found = std::find_if(reserved.begin(), reserved.end(), is_of_kernel);
  if (found != reserved.end() && found->len == len) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(len)),
        "reserve shared memory for a kernel");
  if (found == reserved.end()) {
    reserved.push_back({kernel, device, len});
  } else {
    found->len = len;
  }
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchConfiguration& configuration, Stream stream,
            Arguments&&... arguments) {
  if (configuration.shared_len > 48 * 1024) {  // more than that must be asked for
    reserve_shared_memory(reinterpret_cast<const void*>(kernel), configuration.shared_len);
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(configuration.blocks);
  config.blockDim = dim3(configuration.threads);
  config.dynamicSmemBytes = configuration.shared_len;
  config.stream = static_cast<cudaStream_t>(stream);
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "start a kernel");
}

}  // namespace warpcipher::cuda
