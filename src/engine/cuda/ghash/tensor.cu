// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/ghash/launches.hpp"

#include <algorithm>

#include "engine/cuda/ghash/message_rows.cuh"
#include "engine/cuda/ghash/tensor.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::ghash {
namespace {

// 99 KiB of shared memory: fits compute capability 8.6 and 8.9. H200, only the kernel, text in device memory (a plain
// read runs at 4550 GB/s): 3510 GB/s for 4 GiB, 3320 GB/s for 1 GiB. Segments of 16 steps, 130 KiB, gave 3680 and 3470.
// But on such a GPU warpgroups hash long texts, and GPUs without warpgroups have less memory bandwidth than any of
// these rates.
using OneKey = TensorPolicy<8, 8, Sharing::one_key>;
using ManyKeys = TensorPolicy<4, 8, Sharing::many_keys>;  // 26.5 KiB for each warp: 212 KiB
constexpr std::uint32_t least_warps_of_many_keys = 6;     // 159 KiB, of compute capability 8.0
using Rows96 = MessageRowsPolicy<24, 4, 512>;  // 98 KiB: rows of 96 blocks without a product between segments
constexpr std::size_t rows_len = sizeof(MessageMatrices<Rows96::steps>);
static_assert(Matrices<OneKey::steps>::squares <= tensor_squares &&
                  MessageMatrices<Rows96::steps>::squares <= tensor_squares,
              "the table of powers is long enough for every policy");
static_assert(OneKey::shared_len == one_key_shared_len &&
                  ManyKeys::shared_len_of(least_warps_of_many_keys) == many_keys_shared_len,
              "what the choice demands of a device (algorithm.hpp) is what the kernels take");
static_assert(rows_len <= OneKey::shared_len, "a device that has one of the algorithms for one key has both");

template <class Policy>
void launch_policy(const Device& device, Stream stream, const ChunkList& list, std::uint32_t warps = Policy::warps) {
  const std::uint64_t blocks = list.chunks < device.multiprocessors ? list.chunks : device.multiprocessors;
  const LaunchConfiguration configuration{static_cast<std::uint32_t>(blocks), warps * warp_len,
                                          Policy::shared_len_of(warps)};
  launch(list.is_aligned ? &hash_chunks_by_matrix<Policy, true> : &hash_chunks_by_matrix<Policy, false>, configuration,
         stream, list);
}

}  // namespace

std::uint32_t tensor_warps(const Device& device, GhashAlgorithm algorithm) {
  return algorithm == GhashAlgorithm::tensor_warpgroups ? warpgroup_warps(device)
                                                        : device.multiprocessors * OneKey::warps;
}

void hash_on_tensor_cores(const Device& device, Stream stream, GhashAlgorithm algorithm, const ChunkList& list) {
  if (algorithm == GhashAlgorithm::tensor_warpgroups) return hash_by_warpgroups(device, stream, list);
  if (algorithm == GhashAlgorithm::tensor_many_keys) {
    const std::size_t warps = device.shared_len / ManyKeys::shared_len_of(1);
    return launch_policy<ManyKeys>(device, stream, list,
                                   static_cast<std::uint32_t>(std::min<std::size_t>(warps, ManyKeys::warps)));
  }
  launch_policy<OneKey>(device, stream, list);
}

void hash_rows(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts) {
  constexpr std::uint64_t messages_of_block = std::uint64_t{messages_of_warp} * Rows96::warps;
  const std::uint64_t wanted = (list.messages + messages_of_block - 1) / messages_of_block;
  const std::uint64_t blocks = wanted < device.multiprocessors ? wanted : device.multiprocessors;
  launch(list.is_aligned ? &hash_messages_by_matrix<Rows96, true> : &hash_messages_by_matrix<Rows96, false>,
         {static_cast<std::uint32_t>(blocks), Rows96::threads, rows_len}, stream, list, verdicts);
}

}  // namespace warpcipher::cuda::ghash
