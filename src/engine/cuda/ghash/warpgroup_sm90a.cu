// SPDX-License-Identifier: Apache-2.0
// In a file and its own library: code for sm_90a runs only on compute capability 9.0.
#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/ghash/warpgroup.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::ghash {
namespace {

using Policy = WarpgroupPolicy<16, 8, 384>;
static_assert(SharedMatrices<Policy::steps>::blocks_of_segment == warpgroup_chunk_multiple);
static_assert(SharedMatrices<Policy::steps>::squares <= tensor_squares, "the table of powers is long enough");

static_assert(Policy::shared_len == warpgroup_shared_len,
              "what the choice demands of a device (algorithm.hpp) is what the kernel takes");

}  // namespace

std::uint32_t warpgroup_warps(const Device& device) { return device.multiprocessors * Policy::warps; }

void hash_by_warpgroups(const Device& device, Stream stream, const ChunkList& list) {
  const std::uint64_t groups = (list.chunks + warps_of_group - 1) / warps_of_group;
  const std::uint64_t blocks = groups < device.multiprocessors ? groups : device.multiprocessors;
  launch(list.is_aligned ? &hash_chunks_by_warpgroup<Policy, true> : &hash_chunks_by_warpgroup<Policy, false>,
         LaunchConfiguration{static_cast<std::uint32_t>(blocks), Policy::threads, Policy::shared_len}, stream, list);
}

}  // namespace warpcipher::cuda::ghash
