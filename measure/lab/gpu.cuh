// SPDX-License-Identifier: Apache-2.0
// The common parts of jobs on a GPU; nothing in builds without CUDA: the device made current, memory of it, the
// kernel's attributes, shared memory.
#pragma once

#if WARPCIPHER_HAS_CUDA
#include <cuda_runtime.h>

#include <memory>

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

// How a job starts its kernel: with `threads` a block and `shared_len` bytes of dynamic shared memory.
class Launch {
 public:
  template <class... Parameters>
  Launch(const Setting& setting, void (*kernel)(Parameters...), std::uint32_t in_a_block, std::size_t shared)
      : device(setting.device),
        threads(in_a_block),
        shared_len(shared),
        kernel_(reinterpret_cast<const void*>(kernel)) {}

  // Enqueues a kernel with a thread for each of `count`, in whole blocks; none for 0.
  template <class... Parameters, class... Arguments>
  void operator()(void (*kernel)(Parameters...), std::size_t count, Stream stream, Arguments&&... arguments) const {
    if (count == 0) return;
    const DeviceScope scope(device);
    const auto blocks = static_cast<std::uint32_t>((count + threads - 1) / threads);
    cuda::launch(kernel, {blocks, threads, shared_len}, stream, std::forward<Arguments>(arguments)...);
  }

  // The runtime's figures of the kernel.
  Facts facts() const {
    const DeviceScope scope(device);
    cudaFuncAttributes attributes{};
    cuda::check(cudaFuncGetAttributes(&attributes, kernel_), "look at a kernel");
    if (shared_len > 48 * 1024) {  // without asking for more than that, none would fit
      cuda::check(
          cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_len)),
          "reserve shared memory for a kernel");
    }
    int blocks = 0;
    cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_, static_cast<int>(threads), shared_len),
                "look at the occupancy of a kernel");
    int resident = 0;
    cuda::check(cudaDeviceGetAttribute(&resident, cudaDevAttrMaxThreadsPerMultiProcessor, device),
                "look at the device");
    return {{"registers_a_thread", attributes.numRegs},
            {"blocks_a_multiprocessor", blocks},
            {"threads_a_multiprocessor", static_cast<std::int64_t>(blocks) * threads},
            {"most_threads_a_multiprocessor", resident}};
  }

  const int device;
  const std::uint32_t threads;
  const std::size_t shared_len;

 private:
  const void* const kernel_;
};

// A job of one kernel: run(launch, data, stream).
template <class Run>
Job kernel_job(const Launch& launch, Run run) {
  return {[launch, run = std::move(run)](const Data& data, Stream stream) { run(launch, data, stream); },
          [launch] { return launch.facts(); }};
}

// ---- pipes.cu: the highest rates of a multiprocessor, measured on this device

enum class Pipe : std::uint8_t {
  shared_load,  // 32-bit loads from shared memory, each lane from its own bank
  logic,        // three-input logic operations on 32-bit registers
};

struct PipeRate {
  double per_clock;  // operations of lanes for each clock and multiprocessor
  double clock_hz;   // of the multiprocessors, meanwhile
};

// Runs one block of 1024 threads on each multiprocessor of the current device, and waits. Each thread performs
// `operations` operations, rounded up to a whole loop. 2^17 take about two milliseconds. Throws Error{engine_failure,
// out_of_memory}.
PipeRate measure_pipe(Pipe pipe, std::uint32_t operations, Stream stream);

// Starts a kernel that does nothing, on the current device. Does not wait. Throws Error{engine_failure}.
void launch_nothing(Stream stream);

// Makes the first units of a key stream ("chacha20": 64 bytes each, "aes-128-ctr": 16, a multiple of 256 of them) in
// registers, under a key of sevens and an IV of zeros. Each lane writes the XOR of its words to `sums`; returns how
// many there are. Does not wait. Throws Error{invalid_argument, engine_failure}.
std::uint32_t start_key_stream(std::string_view name, std::uint32_t units, std::uint32_t* sums, Stream stream);

}  // namespace warpcipher::lab
#endif
