// SPDX-License-Identifier: Apache-2.0
// The fibers of the emulated GPU (see cuda_runtime.h). One block runs at a time; its threads are fibers that yield
// where CUDA's would wait.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "context.hpp"
#include "cuda_runtime.h"

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
}
alignas(16) uint4 shared_sums[1024 / 16];
alignas(16) uint4 shared_round_keys[30 * 1024 / 16];
}  // namespace warpcipher::cuda
namespace warpcipher::lab {
alignas(16) uint4 shared_memory[227 * 1024 / 16];
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
std::mt19937 shuffle_order(1);

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
    std::shuffle(order.begin(), order.end(), shuffle_order);
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
  std::shuffle(order.begin(), order.end(), shuffle_order);
  for (const unsigned i : order) {
    std::memset(warpcipher::cuda::lane_table::shared_tables, 0xa5, sizeof warpcipher::cuda::lane_table::shared_tables);
    std::memset(warpcipher::cuda::bitslice::shared_masks, 0xa5, sizeof warpcipher::cuda::bitslice::shared_masks);
    std::memset(warpcipher::cuda::ghash::shared_memory, 0xa5, shared_len);
    std::memset(warpcipher::cuda::chacha::shared_matrices, 0xa5, sizeof warpcipher::cuda::chacha::shared_matrices);
    std::memset(warpcipher::cuda::shared_sums, 0xa5, sizeof warpcipher::cuda::shared_sums);
    std::memset(warpcipher::cuda::shared_round_keys, 0xa5, sizeof warpcipher::cuda::shared_round_keys);
    std::memset(warpcipher::search::cuda::shared_planes, 0xa5, sizeof warpcipher::search::cuda::shared_planes);
    std::memset(warpcipher::lab::shared_memory, 0xa5, shared_len);
    blockIdx.x = i % grid.x;
    blockIdx.y = i / grid.x;
    run_block(block.x);
  }
}

}  // namespace emulation
