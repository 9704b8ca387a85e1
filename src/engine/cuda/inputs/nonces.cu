// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/nonces.hpp"

#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 128;

// As NonceHash in src/batch/nonces.cpp.
__device__ __forceinline__ std::uint64_t fold(std::uint64_t a, std::uint64_t b) { return a * b ^ __umul64hi(a, b); }

__device__ __forceinline__ std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) {
  return std::uint64_t{a} << 32 | b;
}

__global__ void __launch_bounds__(threads)
    enter_nonces(const MessageView* views, const Block* masks, std::uint32_t messages,
                 const __grid_constant__ NonceTable table, BatchSummary* summary) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < messages; i += stride) {
    const Block nonce = views[i].start;
    const Block mask = masks[i];
    std::uint64_t hash = fold(pair_of(nonce.words[0], nonce.words[1]) ^ table.seeds[0],
                              pair_of(nonce.words[2], mask.words[0]) ^ table.seeds[1]);
    hash = fold(hash ^ pair_of(mask.words[1], mask.words[2]), mask.words[3] ^ table.seeds[2]);
    const unsigned long long entry = (hash >> 32 << 32) | (i + 1);
    for (auto place = static_cast<std::uint32_t>(hash) & table.mask;; place = (place + 1) & table.mask) {
      const unsigned long long found = atomicCAS(&table.places[place], 0ull, entry);
      if (found == 0) break;
      if (found >> 32 != entry >> 32) continue;
      const std::uint32_t other = static_cast<std::uint32_t>(found) - 1;
      const Block other_nonce = views[other].start;
      const Block other_mask = masks[other];
      std::uint32_t difference = 0;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        difference |= mask.words[w] ^ other_mask.words[w];
        if (w < 3) difference |= nonce.words[w] ^ other_nonce.words[w];
      }
      if (difference == 0) {
        summary->bad = 1;
        break;
      }
    }
  }
}

}  // namespace

void check_nonces(const Device& device, Stream stream, const MessageView* views, const Block* masks,
                  std::uint32_t messages, const NonceTable& table, BatchSummary* summary) {
  launch(&enter_nonces, configuration_of_lanes(device, messages, threads, 16), stream, views, masks, messages, table,
         summary);
}

}  // namespace warpcipher::cuda
