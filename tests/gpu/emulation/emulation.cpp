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

constexpr unsigned most_threads = 1024;  // of a block

struct Fiber {
  Context context;
  unsigned index = 0;
  unsigned turn = 0;
  Fiber* next = nullptr;  // of those that wait where it does
};

struct Barrier {
  unsigned arrived = 0;
  Fiber* waiting = nullptr;
};

struct Warp {
  Barrier barrier;
  std::uint64_t slots[2][32] = {};
};

std::vector<std::unique_ptr<Fiber>> fibers;
Warp warps[most_threads / 32];
Barrier block_barrier;
unsigned alive = 0;
Fiber* current = nullptr;
// Those that can run on, when the round of the present ones ends: nobody looks at a thread that waits.
Fiber* ready[most_threads];
unsigned ready_count = 0;
const std::function<void()>* body = nullptr;
// The order of threads changes each time they run on: std::shuffle took a fifth of the tests' time.
std::uint32_t random_state = 1;
template <class T>
WITHOUT_SANITIZERS void shuffle(T* first, std::size_t count) {
  std::uint32_t state = random_state;
  for (std::size_t i = count; i > 1; --i) {
    state = state * 1664525u + 1013904223u;
    const std::size_t other = (static_cast<std::uint64_t>(state) * i) >> 32;
    const T kept = first[i - 1];
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
  --alive;
}

WITHOUT_SANITIZERS void wait_at(Barrier& barrier, unsigned members) {
  if (++barrier.arrived == members) {
    barrier.arrived = 0;
    for (Fiber* fiber = barrier.waiting; fiber != nullptr; fiber = fiber->next) ready[ready_count++] = fiber;
    barrier.waiting = nullptr;
    return;
  }
  Fiber* const self = current;
  self->next = barrier.waiting;
  barrier.waiting = self;
  self->context.pause();
}

WITHOUT_SANITIZERS void run_rounds() {
  Fiber* round[most_threads];
  while (ready_count != 0) {
    const unsigned count = ready_count;
    for (unsigned i = 0; i < count; ++i) round[i] = ready[i];
    ready_count = 0;
    shuffle(round, count);
    for (unsigned i = 0; i < count; ++i) {
      current = round[i];
      threadIdx.x = current->index;
      current->context.resume();
    }
  }
}

void run_block(unsigned threads) {
  while (fibers.size() < threads) fibers.push_back(std::make_unique<Fiber>());
  std::fill_n(warps, threads / 32, Warp{});
  block_barrier = {};
  alive = ready_count = threads;
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& fiber = *fibers[i];
    fiber.index = i;
    fiber.turn = 0;
    fiber.context.begin(start);
    ready[i] = &fiber;
  }
  run_rounds();
  if (alive != 0) {
    std::fprintf(stderr, "emulated GPU: threads wait for each other for ever\n");
    std::abort();
  }
}

}  // namespace

WITHOUT_SANITIZERS void sync_block() { wait_at(block_barrier, blockDim.x); }

WITHOUT_SANITIZERS void sync_warp() { wait_at(warps[current->index / 32].barrier, 32); }

WITHOUT_SANITIZERS unsigned turn() { return current->turn ^= 1; }

WITHOUT_SANITIZERS const std::uint64_t* gather(std::uint64_t value) {
  const unsigned index = current->index;
  std::uint64_t* const slots = warps[index / 32].slots[turn()];
  slots[index % 32] = value;
  sync_warp();
  return slots;
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_len, const std::function<void()>& lane) {
  if (block.x % 32 != 0 || block.x > most_threads || grid.x == 0 || grid.y == 0 || shared_len > 227 * 1024) {
    std::fprintf(stderr, "emulated GPU: a launch of %u times %u blocks of %u threads and %zu bytes\n", grid.x, grid.y,
                 block.x, shared_len);
    std::abort();
  }
  body = &lane;
  gridDim = grid;
  blockDim = block;
  std::vector<unsigned> order(grid.x * grid.y);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order.data(), order.size());
  limit_shared(shared_len);
  for (const unsigned i : order) {
    paint_shared(shared_len);
    blockIdx.x = i % grid.x;
    blockIdx.y = i / grid.x;
    run_block(block.x);
  }
}

}  // namespace emulation
