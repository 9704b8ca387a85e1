// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/launches.hpp"

#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/launch_configuration.cuh"
#include "engine/cuda/aes/source.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Tables>
__global__ void __launch_bounds__(block_threads, 1)
    encrypt_first_blocks_kernel(const __grid_constant__ FirstBlocks batch) {
  fill_tables<Tables, false>();
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < batch.count; i += stride) {
    MessageView& view = batch.views[i];
    const BatchSource::Key key{global(batch.round_keys) + std::size_t{most_round_keys} * view.key};
    const LaneCipher<Tables, false, 0, BatchSource::Key> cipher(key, batch.rounds);
    Block start = view.start;
    Block blocks[1] = {start};
    cipher(blocks);
    if (batch.masks == nullptr) {
      view.start = blocks[0];
    } else {
      batch.masks[i] = blocks[0];
      start.words[3] = byte_swap(byte_swap(start.words[3]) + 1);
      view.start = start;
    }
  }
}

template <class Tables>
void launch_first_blocks(const Device& device, Stream stream, const FirstBlocks& batch) {
  launch(&encrypt_first_blocks_kernel<Tables>,
         parallel_configuration(device, (std::uint64_t{batch.count} + warp_len - 1) / warp_len, Tables::shared_len),
         stream, batch);
}

}  // namespace

void encrypt_first_blocks(const Device& device, Stream stream, TableLayout layout, const FirstBlocks& batch) {
  layout == TableLayout::tables_128 ? launch_first_blocks<Tables128>(device, stream, batch)
                                    : launch_first_blocks<Tables64>(device, stream, batch);
}

}  // namespace warpcipher::cuda::lane_table
