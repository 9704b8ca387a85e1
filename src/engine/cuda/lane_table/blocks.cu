// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/blocks.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/lane_table/modes.cuh"
#include "engine/cuda/lane_table/parallel.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

__global__ void spread_blocks(const Block* blocks, std::uint64_t count, std::uint8_t* first, std::uint64_t stride) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    auto* const to = reinterpret_cast<std::uint32_t*>(global(first) + i * stride);
    for (int word = 0; word < 4; ++word) to[word] = blocks[i].words[word];
  }
}

}  // namespace

void encrypt_blocks(const Device& device, Stream stream, const std::uint32_t* words, std::size_t key_len, Block* blocks,
                    std::uint64_t count, void* first, std::size_t stride) {
  Secret<SingleSource> source;
  source->view.in = source->view.out = reinterpret_cast<std::uint8_t*>(blocks);
  source->view.in_len = source->view.out_len = count * sizeof(Block);
  source->view.units = count;
  source->tiles = (count + tile_units - 1) / tile_units;
  source->rounds = static_cast<std::uint32_t>(key_len / 4 + 6);
  std::copy_n(words, most_schedule_words, source->schedule);
  launch_parallel<EcbEncryption>({device, stream, choose_form(device), &*source, nullptr}, {});
  constexpr std::uint32_t threads = 256;
  const std::uint64_t wanted = (count + threads - 1) / threads;
  const std::uint64_t most = 8 * std::uint64_t{device.multiprocessors};
  launch(&spread_blocks, {static_cast<std::uint32_t>(wanted < most ? wanted : most), threads}, stream, blocks, count,
         static_cast<std::uint8_t*>(first), std::uint64_t{stride});
}

}  // namespace warpcipher::cuda::lane_table
