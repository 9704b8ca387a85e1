// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/memory.hpp"

#include <cuda_runtime_api.h>
#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/fork.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/refusal.hpp"

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

  // nullptr: no block has about that size.
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

namespace {

constexpr std::size_t least_len = std::size_t{64} << 10;
// The largest pieces of host transfers. Larger blocks were requested by a user, or hold one long message: such sizes
// seldom recur, and one of them would fill the pool.
constexpr std::size_t most_kept_of_one = std::size_t{16} << 20;
constexpr std::size_t most_kept_len = std::size_t{512} << 20;  // a read of a file takes as much

struct Kept {
  std::size_t room;
  void* memory;
};

// Sizes are powers of two, so that a call can use a block that another call has freed; the oldest block is first. Never
// destroyed: the driver may be gone by then.
struct Pool {
  std::mutex mutex;
  std::deque<Kept> kept;
  std::size_t kept_len = 0;
};

Pool& pinned_pool() {
  static constinit FirstUse<Pool> instance;
  return instance.get();
}

std::size_t pinned_room_for(std::size_t size) {
  return size <= most_kept_of_one ? std::bit_ceil(std::max(size, least_len)) : size;
}

// The driver's attributes of memory; nothing if it has none.
cudaPointerAttributes attributes_of(const void* memory) {
  enter_context();
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess) return attributes;
  cudaGetLastError();
  return {};
}

}  // namespace

void* take_pinned(std::size_t size) {
  const std::size_t room = pinned_room_for(size);
  {
    const std::lock_guard lock(pinned_pool().mutex);
    std::deque<Kept>& kept = pinned_pool().kept;
    const auto last = std::find_if(kept.rbegin(), kept.rend(), [&](const Kept& k) { return k.room == room; });
    if (last != kept.rend()) {
      void* const memory = last->memory;
      kept.erase(std::next(last).base());
      pinned_pool().kept_len -= room;
      return memory;
    }
  }
  void* memory = nullptr;
  check(cudaMallocHost(&memory, room), "allocate page-locked memory");
  return memory;
}

void give_pinned(void* memory, std::size_t size, std::size_t used) noexcept {
  if (is_lost_at_fork()) return;
  secure_wipe(memory, used);
  const std::size_t room = pinned_room_for(size);
  if (room > most_kept_of_one) {
    cudaFreeHost(memory);
    return;
  }
  std::vector<void*> freed;  // outside of the lock: the driver is slow
  try {
    const std::lock_guard lock(pinned_pool().mutex);
    std::deque<Kept>& kept = pinned_pool().kept;
    kept.push_back({room, memory});
    pinned_pool().kept_len += room;
    memory = nullptr;
    while (pinned_pool().kept_len > most_kept_len) {
      freed.push_back(kept.front().memory);
      pinned_pool().kept_len -= kept.front().room;
      kept.pop_front();
    }
  } catch (const std::bad_alloc&) {  // no memory to keep it: free it
    if (memory != nullptr) cudaFreeHost(memory);
  }
  for (void* const one : freed) cudaFreeHost(one);
}

AddressRange find_page_locked(const void* memory) {
  const cudaPointerAttributes attributes = attributes_of(memory);
  if (attributes.type != cudaMemoryTypeHost || attributes.devicePointer != memory) return {};
  return find_allocation(memory);
}

bool is_pinned(const void* memory, std::size_t size) {
  if (size == 0) return false;
  for (const void* end : {memory, static_cast<const void*>(static_cast<const std::uint8_t*>(memory) + size - 1)}) {
    if (attributes_of(end).type != cudaMemoryTypeHost) return false;
  }
  return true;
}

namespace {

constexpr std::uint32_t threads = 512;
// H200, 256 texts of 16 KiB out while a copy engine brings as much in: 2, 4, 8 and 16 blocks move 46.8, 47.2, 47.0 and
// 39.3 GB/s each way.
constexpr std::uint32_t full_blocks = 8;
// H200, eight payloads of a queue, whose texts copy engines bring in: 1 block 40.2 to 41.7 GB/s, 2 blocks 37.7 to 38.1;
// on another machine 4, 8 and 16 blocks 36.1, 35.4 and 33.2. One batch of 16,384 texts in pieces: 1, 2 and 8 blocks
// 29.8, 25.1 and 23.8: with 8 blocks, a piece was in only when the piece before it had gone out.
constexpr std::uint32_t gentle_blocks = 1;
constexpr std::uint32_t in_flight = 4;  // loads of a lane

// Lanes copy adjacent words, so that a step of a warp is one request on the link.
template <class Word>
__device__ __forceinline__ void copy_words(std::uint8_t* to, const std::uint8_t* from, std::size_t len) {
  auto* const out = reinterpret_cast<Word*>(to);
  const auto* const in = reinterpret_cast<const Word*>(from);
  const std::size_t words = len / sizeof(Word);
  std::size_t i = lane_index();
  for (; i + (in_flight - 1) * warp_len < words; i += in_flight * warp_len) {
    Word held[in_flight];
#pragma unroll
    for (std::uint32_t k = 0; k < in_flight; ++k) held[k] = in[i + k * warp_len];
#pragma unroll
    for (std::uint32_t k = 0; k < in_flight; ++k) out[i + k * warp_len] = held[k];
  }
  for (; i < words; i += warp_len) out[i] = in[i];
}

// One warp for each copy.
__global__ void __launch_bounds__(threads) copy_many_kernel(const DeviceCopy* copies, std::uint32_t count) {
  const std::uint32_t warps = gridDim.x * (blockDim.x / warp_len);
  for (std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / warp_len; i < count; i += warps) {
    const DeviceCopy copy = copies[i];
    auto* const to = static_cast<std::uint8_t*>(copy.to);
    const auto* const from = static_cast<const std::uint8_t*>(copy.from);
    const std::uintptr_t places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    std::size_t done = 0;
    if (places % sizeof(uint4) == 0) {
      done = copy.len / sizeof(uint4) * sizeof(uint4);
      copy_words<uint4>(to, from, done);
    } else if (places % sizeof(std::uint32_t) == 0) {
      done = copy.len / sizeof(std::uint32_t) * sizeof(std::uint32_t);
      copy_words<std::uint32_t>(to, from, done);
    }
    copy_words<std::uint8_t>(to + done, from + done, copy.len - done);
  }
}

// A lane a byte.
__global__ void __launch_bounds__(threads) copy_rows_kernel(std::uint8_t* to, const std::uint8_t* rows,
                                                            std::uint64_t step, std::uint32_t len, std::uint64_t all) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < all;
       i += std::uint64_t{gridDim.x} * threads) {
    to[i] = rows[i / len * step + i % len];
  }
}

#if CUDART_VERSION >= 13000
// For initcheck, force calls: the initcheck of CUDA 13.0 does not see what a batch of copies writes.
bool in_batches() { return overrides().copies != PickedCopies::calls; }
#endif

}  // namespace

void copy_all(std::span<const DeviceCopy> copies, cudaMemcpyKind kind, Stream stream) {
  const char* const what = kind == cudaMemcpyHostToDevice ? "copy to the device" : "copy from the device";
#if CUDART_VERSION >= 13000
  if (copies.size() > 1 && in_batches()) {
    std::vector<void*> to;
    std::vector<const void*> from;
    std::vector<std::size_t> lens;
    for (const DeviceCopy& copy : copies) {
      to.push_back(copy.to);
      from.push_back(copy.from);
      lens.push_back(copy.len);
    }
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    std::size_t first = 0;  // the first copy with these attributes
    check(cudaMemcpyBatchAsync(to.data(), from.data(), lens.data(), copies.size(), &attributes, &first, 1,
                               native(stream)),
          what);
    return;
  }
#endif
  for (const DeviceCopy& copy : copies) {
    check(cudaMemcpyAsync(copy.to, copy.from, copy.len, kind, native(stream)), what);
  }
}

void copy_many(const DeviceCopy* copies, std::size_t count, Pace pace, Stream stream) {
  if (count == 0) return;
  constexpr std::size_t warps_of_block = threads / warp_len;
  const std::size_t most_blocks = pace == Pace::gentle ? gentle_blocks : full_blocks;
  const std::size_t blocks = std::min(most_blocks, (count + warps_of_block - 1) / warps_of_block);
  launch(&copy_many_kernel, LaunchConfiguration{static_cast<std::uint32_t>(blocks), threads}, stream, copies,
         static_cast<std::uint32_t>(count));
}

void copy_rows(std::uint8_t* to, const std::uint8_t* rows, std::size_t step, std::size_t len, std::size_t count,
               Stream stream) {
  if (len * count == 0) return;
  launch(&copy_rows_kernel, configuration_of_lanes(current_device(), len * count, threads, 4), stream, to, rows,
         std::uint64_t{step}, static_cast<std::uint32_t>(len), std::uint64_t{len * count});
}

}  // namespace warpcipher::cuda
