// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/memory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/fork.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"

namespace warpcipher::cuda {
namespace {

// The bytes that a pool keeps, and does not return to the driver, when a stream is synchronised: enough for the
// descriptors and scratch of large batches, for example a million messages with a key each on a device with 64 GiB.
constexpr std::uint64_t least_kept_len = std::uint64_t{256} << 20;
constexpr std::uint64_t kept_part = 64;  // of the device's memory

// One pool for each device, for the life of the process. The driver frees it with the context; a destructor here could
// run after the driver has shut down.
cudaMemPool_t pool() {
  struct Pools {
    std::mutex mutex;
    std::map<int, cudaMemPool_t> of_device;
  };
  static constinit FirstUse<Pools> instance;
  Pools& pools = instance.get();
  int device = 0;
  check(cudaGetDevice(&device), "find the current device");
  const std::lock_guard lock(pools.mutex);
  const auto found = pools.of_device.find(device);
  if (found != pools.of_device.end()) return found->second;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t created = nullptr;
  check(cudaMemPoolCreate(&created, &properties), "create a memory pool");
  std::uint64_t kept = std::max<std::uint64_t>(least_kept_len, find_device(device).memory / kept_part);
  check(cudaMemPoolSetAttribute(created, cudaMemPoolAttrReleaseThreshold, &kept), "set up a memory pool");
  pools.of_device.emplace(device, created);
  return created;
}

// Sizes are rounded up, by a quarter at most, so that a call can use memory that another call has freed.
std::size_t room_for(std::size_t size) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(size) / 4, 512);
  return (size + step - 1) / step * step;
}

// Memory that was freed on the library's own streams, by stream.
class KeptMemory {
 public:
  // Never destroyed: the driver may be gone by then.
  static KeptMemory& the() {
    static constinit FirstUse<KeptMemory> instance;
    return instance.get();
  }

  void add(Stream stream) {
    const std::lock_guard lock(mutex_);
    blocks_[stream];
  }

  void remove(Stream stream) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(stream);
    if (found == blocks_.end()) return;
    for (const Block& block : found->second) {
      cudaFreeAsync(block.memory, native(stream));
      len_ -= block.room;
    }
    blocks_.erase(found);
  }

  // nullptr: there is no block of about that size.
  void* take(std::size_t size, Stream stream) noexcept {
    const std::size_t room = room_for(size);
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(stream);
    if (found == blocks_.end()) return nullptr;
    std::vector<Block>& blocks = found->second;
    for (Block& block : blocks) {
      if (block.room != room) continue;
      void* const memory = block.memory;
      len_ -= room;
      block = blocks.back();
      blocks.pop_back();
      return memory;
    }
    return nullptr;
  }

  // False: the caller must free it.
  bool give(void* memory, std::size_t size, Stream stream) noexcept {
    const std::size_t room = room_for(size);
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(stream);
    if (found == blocks_.end() || room > least_kept_len - len_) return false;
    try {
      found->second.push_back({room, memory});
    } catch (const std::bad_alloc&) {  // no room to remember it
      return false;
    }
    len_ += room;
    return true;
  }

 private:
  struct Block {
    std::size_t room;
    void* memory;
  };

  std::mutex mutex_;
  std::unordered_map<Stream, std::vector<Block>> blocks_;
  std::size_t len_ = 0;  // at most least_kept_len
};

}  // namespace

void* allocate(std::size_t size, Stream stream) {
  if (void* const kept = KeptMemory::the().take(size, stream)) return kept;
  void* memory = nullptr;
  check(cudaMallocFromPoolAsync(&memory, room_for(size), pool(), native(stream)), "allocate device memory");
  return memory;
}

void deallocate(void* memory, std::size_t size, std::size_t used, Stream stream) noexcept {
  if (is_lost_at_fork()) return;
  if (used != 0) cudaMemsetAsync(memory, 0, used, native(stream));
  if (!KeptMemory::the().give(memory, size, stream)) cudaFreeAsync(memory, native(stream));
}

void keep_memory_of(Stream stream) { KeptMemory::the().add(stream); }

void let_memory_go(Stream stream) noexcept { KeptMemory::the().remove(stream); }

void Upload::allocate(Stream stream, Wiping wiping) {
  stream_ = stream;
  host_ = SecretBytes(sent_);
  device_ = std::make_unique<StreamBuffer>(size_, stream, wiping);
}

// The runtime copies pageable memory into its own buffer before it returns, so the host side may be wiped at once.
// Up to 64 KiB do not wait for the stream (CUDA's programming guide, "Asynchronous Concurrent Execution"); larger
// copies wait for all work on the stream. One copy of 76 KiB cost a queue 16% of its rate (H200).
void Upload::send() {
  constexpr std::size_t most_staged = std::size_t{64} << 10;
  constexpr std::size_t worth_waiting = std::size_t{1} << 20;  // more calls than that would take as long as the wait
  const std::size_t piece = sent_ <= worth_waiting ? most_staged : sent_;
  for (std::size_t offset = 0; offset < sent_; offset += piece) {
    check(cudaMemcpyAsync(device_->data() + offset, host_.data() + offset, std::min(piece, sent_ - offset),
                          cudaMemcpyHostToDevice, native(stream_)),
          "copy descriptors to the device");
  }
}

}  // namespace warpcipher::cuda
