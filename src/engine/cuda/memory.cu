// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/memory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/cuda/check.hpp"
#include "engine/cuda/device.hpp"

namespace warpcipher::cuda {
namespace {

// What a pool keeps when a stream is synchronised, rather than giving it back to the driver: enough for the descriptors
// and scratch of large batches, a million messages with a key each where the device has 64 GiB.
constexpr std::uint64_t least_kept_len = std::uint64_t{256} << 20;
constexpr std::uint64_t kept_part = 64;  // of the device's memory

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

// One pool a device for the life of the process: the driver frees it with the context, and freeing it here could run
// after the driver has shut down.
cudaMemPool_t pool() {
  static std::mutex mutex;
  static std::map<int, cudaMemPool_t> pools;
  int device = 0;
  check(cudaGetDevice(&device), "find the current device");
  const std::lock_guard lock(mutex);
  const auto found = pools.find(device);
  if (found != pools.end()) return found->second;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t created = nullptr;
  check(cudaMemPoolCreate(&created, &properties), "create a memory pool");
  std::uint64_t kept = std::max<std::uint64_t>(least_kept_len, find_device(device).memory / kept_part);
  check(cudaMemPoolSetAttribute(created, cudaMemPoolAttrReleaseThreshold, &kept), "set up a memory pool");
  pools.emplace(device, created);
  return created;
}

}  // namespace

void* allocate(std::size_t size, Stream stream) {
  void* memory = nullptr;
  check(cudaMallocFromPoolAsync(&memory, size, pool(), native(stream)), "allocate device memory");
  return memory;
}

void deallocate(void* memory, std::size_t used, Stream stream) noexcept {
  if (used != 0) cudaMemsetAsync(memory, 0, used, native(stream));
  cudaFreeAsync(memory, native(stream));
}

void Upload::allocate(Stream stream) {
  stream_ = stream;
  host_ = SecretBytes(size_);
  device_ = std::make_unique<StreamBuffer>(size_, stream);
}

// From pageable memory the runtime copies into its own staging before it returns, so the host side may be wiped at
// once.
void Upload::send() {
  if (size_ == 0) return;
  check(cudaMemcpyAsync(device_->data(), host_.data(), size_, cudaMemcpyHostToDevice, native(stream_)),
        "copy descriptors to the device");
}

}  // namespace warpcipher::cuda
