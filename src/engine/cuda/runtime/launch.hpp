// SPDX-License-Identifier: Apache-2.0
// Starting kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

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

// Lets a kernel have as much dynamic shared memory on the current device. The driver, which takes as long for it as for
// a launch, is asked for more only, so that no thread takes away what another is about to use.
void reserve_shared_memory(const void* kernel, std::size_t len);

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
