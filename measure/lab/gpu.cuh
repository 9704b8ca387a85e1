// SPDX-License-Identifier: Apache-2.0
// The common parts of jobs on a GPU: the device made current, memory of it, the kernel's attributes, shared memory.
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

// Memory of a device. It is wiped, where it holds secrets, and freed when all work there is done.
class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t len, bool secret = false) : device_(device), len_(len), secret_(secret) {
    const DeviceScope scope(device_);
    cuda::check(cudaMalloc(&data_, len), "get memory of the device");
  }
  // With a copy of bytes of the host.
  DeviceMemory(int device, const void* content, std::size_t len) : DeviceMemory(device, len) {
    const DeviceScope scope(device_);
    cuda::check(cudaMemcpy(data_, content, len, cudaMemcpyHostToDevice), "copy to the device");
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    const DeviceScope scope(device_);
    cudaDeviceSynchronize();
    if (secret_) cudaMemset(data_, 0, len_);
    cudaFree(data_);
  }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  const int device_;
  const std::size_t len_;
  const bool secret_;
  void* data_ = nullptr;
};

// A job of one kernel, which runs with `threads_` a block and `shared_len_` bytes of dynamic shared memory.
class KernelJob : public Job {
 public:
  // The runtime's figures of the kernel.
  Facts facts() const override {
    const DeviceScope scope(device_);
    cudaFuncAttributes attributes{};
    cuda::check(cudaFuncGetAttributes(&attributes, kernel_), "look at a kernel");
    if (shared_len_ > 48 * 1024) {  // without asking for more than that, none would fit
      cuda::check(
          cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_len_)),
          "reserve shared memory for a kernel");
    }
    int blocks = 0;
    cuda::check(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_, static_cast<int>(threads_), shared_len_),
        "look at the occupancy of a kernel");
    int resident = 0;
    cuda::check(cudaDeviceGetAttribute(&resident, cudaDevAttrMaxThreadsPerMultiProcessor, device_),
                "look at the device");
    return {{"registers_a_thread", attributes.numRegs},
            {"local_bytes_a_thread", static_cast<std::int64_t>(attributes.localSizeBytes)},
            {"constant_bytes", static_cast<std::int64_t>(attributes.constSizeBytes)},
            {"shared_bytes_a_block", static_cast<std::int64_t>(attributes.sharedSizeBytes + shared_len_)},
            {"threads_a_block", threads_},
            {"blocks_a_multiprocessor", blocks},
            {"threads_a_multiprocessor", static_cast<std::int64_t>(blocks) * threads_},
            {"most_threads_a_multiprocessor", resident}};
  }

 protected:
  template <class... Parameters>
  KernelJob(const Setting& setting, void (*kernel)(Parameters...), std::int64_t threads, std::size_t shared_len = 0)
      : device_(setting.device),
        threads_(static_cast<std::uint32_t>(threads)),
        shared_len_(shared_len),
        kernel_(reinterpret_cast<const void*>(kernel)) {}

  // Enqueues the job's kernel with a thread for each of `count`, in whole blocks; none for 0.
  template <class... Parameters, class... Arguments>
  void launch(void (*kernel)(Parameters...), std::size_t count, Stream stream, Arguments&&... arguments) const {
    if (count == 0) return;
    const DeviceScope scope(device_);
    const auto blocks = static_cast<std::uint32_t>((count + threads_ - 1) / threads_);
    cuda::launch(kernel, {blocks, threads_, shared_len_}, stream, std::forward<Arguments>(arguments)...);
  }

  const int device_;
  const std::uint32_t threads_;
  std::size_t shared_len_;

 private:
  const void* kernel_;
};

}  // namespace warpcipher::lab
