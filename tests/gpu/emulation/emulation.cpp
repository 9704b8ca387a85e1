// SPDX-License-Identifier: Apache-2.0
// The fibers of the emulated GPU (see cuda_runtime.h). One block runs at a time; its threads are fibers that yield
// where CUDA's would wait.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "context.hpp"
#include "cuda_runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define WITHOUT_SANITIZERS __attribute__((no_sanitize("address", "undefined")))
#else
#define WITHOUT_SANITIZERS
#endif

dim3 threadIdx, blockIdx, blockDim, gridDim;

// The dynamic shared memory that kernels declare, each under its own name.
namespace warpcipher::cuda {
namespace lane_table {
alignas(16) uint4 shared_tables[227 * 1024 / 16];
}
namespace bitslice {
alignas(16) std::uint32_t shared_masks[48 * 1024 / 4];
}
namespace ghash {
alignas(16) uint4 shared_memory[227 * 1024 / 16];
}
namespace chacha {
alignas(16) uint4 shared_matrices[48 * 1024 / 16];
alignas(16) uint4 shared_records[48 * 1024 / 16];
}  // namespace chacha
alignas(16) uint4 shared_sums[24 * 1024 / 16];
alignas(16) uint4 shared_round_keys[30 * 1024 / 16];
}  // namespace warpcipher::cuda
namespace warpcipher::lab {
alignas(16) uint4 shared_memory[227 * 1024 / 16];
}

namespace warpcipher::prg::cuda {
alignas(16) uint4 shared_product[227 * 1024 / 16];
}
namespace warpcipher::search::cuda {
std::uint32_t shared_planes[48 * 1024 / 4];
}

namespace emulation {
namespace {

struct Barrier {
  unsigned arrived = 0;
  unsigned generation = 0;
};

struct Fiber {
  Context context;
  unsigned index = 0;
  bool done = false;
  Barrier* waiting = nullptr;
  unsigned generation = 0;
};

struct Warp {
  Barrier barrier;
  std::uint64_t slots[32] = {};
};

std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Warp> warps;
Barrier block_barrier;
unsigned alive = 0;
Fiber* current = nullptr;
const std::function<void()>* body = nullptr;
// The order of threads changes each time they run on: std::shuffle took a fifth of the tests' time.
std::uint32_t random_state = 1;
WITHOUT_SANITIZERS void shuffle(std::vector<unsigned>& order) {
  unsigned* const first = order.data();
  std::uint32_t state = random_state;
  for (std::size_t i = order.size(); i > 1; --i) {
    state = state * 1664525u + 1013904223u;
    const std::size_t other = (static_cast<std::uint64_t>(state) * i) >> 32;
    const unsigned kept = first[i - 1];
    first[i - 1] = first[other];
    first[other] = kept;
  }
  random_state = state;
}

// Each of the arrays above, in bytes.
struct Shared {
  void* begin;
  std::size_t size;
};
const Shared shared_arrays[] = {
    {warpcipher::cuda::lane_table::shared_tables, sizeof warpcipher::cuda::lane_table::shared_tables},
    {warpcipher::cuda::bitslice::shared_masks, sizeof warpcipher::cuda::bitslice::shared_masks},
    {warpcipher::cuda::ghash::shared_memory, sizeof warpcipher::cuda::ghash::shared_memory},
    {warpcipher::cuda::chacha::shared_matrices, sizeof warpcipher::cuda::chacha::shared_matrices},
    {warpcipher::cuda::chacha::shared_records, sizeof warpcipher::cuda::chacha::shared_records},
    {warpcipher::cuda::shared_sums, sizeof warpcipher::cuda::shared_sums},
    {warpcipher::cuda::shared_round_keys, sizeof warpcipher::cuda::shared_round_keys},
    {warpcipher::prg::cuda::shared_product, sizeof warpcipher::prg::cuda::shared_product},
    {warpcipher::search::cuda::shared_planes, sizeof warpcipher::search::cuda::shared_planes},
    {warpcipher::lab::shared_memory, sizeof warpcipher::lab::shared_memory},
};

// A kernel has as much shared memory as its launch asks for: AddressSanitizer reports what it takes beyond.
void limit_shared(std::size_t len) {
#if defined(__SANITIZE_ADDRESS__)
  for (const Shared& array : shared_arrays) {
    char* const begin = static_cast<char*>(array.begin);
    const std::size_t own = std::min(len, array.size);
    __asan_unpoison_memory_region(begin, own);
    __asan_poison_memory_region(begin + own, array.size - own);
  }
#else
  static_cast<void>(len);
#endif
}

void paint_shared(std::size_t len) {
  for (const Shared& array : shared_arrays) std::memset(array.begin, 0xa5, std::min(len, array.size));
}

void start() {
  (*body)();
  current->done = true;
}

void wait_at(Barrier& barrier, unsigned members) {
  if (++barrier.arrived == members) {
    barrier.arrived = 0;
    ++barrier.generation;
    return;
  }
  Fiber* const self = current;
  self->waiting = &barrier;
  self->generation = barrier.generation;
  self->context.pause();
}

void run_block(unsigned threads) {
  while (fibers.size() < threads) fibers.push_back(std::make_unique<Fiber>());
  warps.assign(threads / 32, {});
  block_barrier = {};
  alive = threads;
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& fiber = *fibers[i];
    fiber.index = i;
    fiber.done = false;
    fiber.waiting = nullptr;
    fiber.context.begin(start);
  }
  std::vector<unsigned> order(threads);
  std::iota(order.begin(), order.end(), 0u);
  while (alive != 0) {
    shuffle(order);
    bool progress = false;
    for (const unsigned i : order) {
      Fiber& fiber = *fibers[i];
      if (fiber.done || (fiber.waiting != nullptr && fiber.waiting->generation == fiber.generation)) continue;
      progress = true;
      fiber.waiting = nullptr;
      current = &fiber;
      threadIdx.x = i;
      fiber.context.resume();
      if (fiber.done) --alive;
    }
    if (!progress) {
      std::fprintf(stderr, "emulated GPU: threads wait for each other for ever\n");
      std::abort();
    }
  }
}

}  // namespace

void sync_block() { wait_at(block_barrier, blockDim.x); }

void sync_warp() { wait_at(warps[current->index / 32].barrier, 32); }

std::uint64_t exchange(std::uint64_t value, unsigned source) {
  Warp& warp = warps[current->index / 32];
  warp.slots[current->index % 32] = value;
  sync_warp();
  const std::uint64_t other = warp.slots[source];
  sync_warp();
  return other;
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_len, const std::function<void()>& lane) {
  if (block.x % 32 != 0 || block.x > 1024 || grid.x == 0 || grid.y == 0 || shared_len > 227 * 1024) {
    std::fprintf(stderr, "emulated GPU: a launch of %u times %u blocks of %u threads and %zu bytes\n", grid.x, grid.y,
                 block.x, shared_len);
    std::abort();
  }
  body = &lane;
  gridDim = grid;
  blockDim = block;
  std::vector<unsigned> order(grid.x * grid.y);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order);
  limit_shared(shared_len);
  for (const unsigned i : order) {
    paint_shared(shared_len);
    blockIdx.x = i % grid.x;
    blockIdx.y = i / grid.x;
    run_block(block.x);
  }
}

}  // namespace emulation
