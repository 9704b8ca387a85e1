// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/pinned_pool.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/wipe.hpp"
#include "engine/cuda/check.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::size_t least_len = std::size_t{64} << 10;
// Two rings of the pipeline's largest pieces.
constexpr std::size_t most_kept_len = std::size_t{256} << 20;

// Sizes are powers of two, so that a call finds what another left. Never destroyed: the driver may be gone by then.
struct Pool {
  std::mutex mutex;
  std::map<std::size_t, std::vector<void*>> kept;
  std::size_t kept_len = 0;
};

Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

std::size_t room_for(std::size_t size) { return std::bit_ceil(std::max(size, least_len)); }

}  // namespace

void* take_pinned(std::size_t size) {
  const std::size_t room = room_for(size);
  {
    const std::lock_guard lock(pool().mutex);
    std::vector<void*>& same = pool().kept[room];
    if (!same.empty()) {
      void* memory = same.back();
      same.pop_back();
      pool().kept_len -= room;
      return memory;
    }
  }
  void* memory = nullptr;
  check(cudaMallocHost(&memory, room), "allocate page-locked memory");
  return memory;
}

void give_pinned(void* memory, std::size_t size, std::size_t used) noexcept {
  secure_wipe(memory, used);
  const std::size_t room = room_for(size);
  try {
    const std::lock_guard lock(pool().mutex);
    if (pool().kept_len + room <= most_kept_len) {
      pool().kept[room].push_back(memory);
      pool().kept_len += room;
      return;
    }
  } catch (const std::bad_alloc&) {  // no room to remember it: freed like one too many
  }
  cudaFreeHost(memory);
}

bool is_pinned(const void* memory, std::size_t size) {
  if (size == 0) return false;
  for (const void* end : {memory, static_cast<const void*>(static_cast<const std::uint8_t*>(memory) + size - 1)}) {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, end) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    if (attributes.type != cudaMemoryTypeHost) return false;
  }
  return true;
}

}  // namespace warpcipher::cuda
