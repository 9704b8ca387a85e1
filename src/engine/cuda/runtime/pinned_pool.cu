// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/pinned_pool.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <iterator>
#include <mutex>
#include <new>
#include <vector>

#include "core/fork.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"

namespace warpcipher::cuda {
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

Pool& pool() {
  static constinit FirstUse<Pool> instance;
  return instance.get();
}

std::size_t room_for(std::size_t size) {
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
  const std::size_t room = room_for(size);
  {
    const std::lock_guard lock(pool().mutex);
    std::deque<Kept>& kept = pool().kept;
    const auto last = std::find_if(kept.rbegin(), kept.rend(), [&](const Kept& k) { return k.room == room; });
    if (last != kept.rend()) {
      void* const memory = last->memory;
      kept.erase(std::next(last).base());
      pool().kept_len -= room;
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
  const std::size_t room = room_for(size);
  if (room > most_kept_of_one) {
    cudaFreeHost(memory);
    return;
  }
  std::vector<void*> freed;  // outside of the lock: the driver is slow
  try {
    const std::lock_guard lock(pool().mutex);
    std::deque<Kept>& kept = pool().kept;
    kept.push_back({room, memory});
    pool().kept_len += room;
    memory = nullptr;
    while (pool().kept_len > most_kept_len) {
      freed.push_back(kept.front().memory);
      pool().kept_len -= kept.front().room;
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

}  // namespace warpcipher::cuda
