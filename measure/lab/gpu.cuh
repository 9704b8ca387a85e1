// SPDX-License-Identifier: Apache-2.0
// What every job on a GPU needs: its device made current, its kernel's attributes, and shared memory.
#pragma once

#include <cuda_runtime.h>

#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "lab.hpp"

namespace warpcipher::lab {

// The dynamic shared memory of a block: kernels lay it out by offsets.
extern __shared__ uint4 shared_memory[];

// Makes a device current until the end of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    cuda::check(cudaGetDevice(&previous_), "find the current device");
    if (device != previous_) cuda::check(cudaSetDevice(device), "select a device");
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() { cudaSetDevice(previous_); }

 private:
  int previous_ = 0;
};

// What the runtime tells of a kernel that runs with `threads` a block and `shared_len` bytes of dynamic shared memory.
template <class... Parameters>
Facts kernel_facts(void (*kernel)(Parameters...), int device, std::uint32_t threads, std::size_t shared_len) {
  const DeviceScope scope(device);
  cudaFuncAttributes attributes{};
  cuda::check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)), "look at a kernel");
  if (shared_len > 48 * 1024) {  // without asking for more than that, none would fit
    cuda::check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_len)),
                "reserve shared memory for a kernel");
  }
  int blocks = 0;
  cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<const void*>(kernel),
                                                            static_cast<int>(threads), shared_len),
              "look at the occupancy of a kernel");
  int resident = 0;
  cuda::check(cudaDeviceGetAttribute(&resident, cudaDevAttrMaxThreadsPerMultiProcessor, device), "look at the device");
  return {{"registers_a_thread", attributes.numRegs},
          {"local_bytes_a_thread", static_cast<std::int64_t>(attributes.localSizeBytes)},
          {"constant_bytes", static_cast<std::int64_t>(attributes.constSizeBytes)},
          {"shared_bytes_a_block", static_cast<std::int64_t>(attributes.sharedSizeBytes + shared_len)},
          {"threads_a_block", threads},
          {"blocks_a_multiprocessor", blocks},
          {"threads_a_multiprocessor", static_cast<std::int64_t>(blocks) * threads},
          {"most_threads_a_multiprocessor", resident}};
}

}  // namespace warpcipher::lab
