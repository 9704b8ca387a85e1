// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/starts.hpp"

#include "engine/cuda/lane_table/cipher.cuh"
#include "engine/cuda/lane_table/shape.cuh"
#include "engine/cuda/lane_table/source.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Tables>
__global__ void __launch_bounds__(block_threads, 1)
    encrypt_starts_kernel(const __grid_constant__ StartEncryption encryption) {
  fill_tables<Tables, false>();
  __syncthreads();
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < encryption.count; i += stride) {
    MessageView& view = encryption.views[i];
    const BatchSource::Key key{global(encryption.rows) + std::size_t{most_rows} * view.key};
    const LaneCipher<Tables, false, 0, BatchSource::Key> cipher(key, encryption.rounds);
    Block start = view.start;
    Block blocks[1] = {start};
    cipher(blocks);
    if (encryption.masks == nullptr) {
      view.start = blocks[0];
    } else {
      encryption.masks[i] = blocks[0];
      start.words[3] = byte_swap(byte_swap(start.words[3]) + 1);
      view.start = start;
    }
  }
}

template <class Tables>
void launch_starts(const Device& device, Stream stream, const StartEncryption& encryption) {
  launch(&encrypt_starts_kernel<Tables>,
         parallel_shape(device, (std::uint64_t{encryption.count} + warp_len - 1) / warp_len, Tables::shared_len),
         stream, encryption);
}

}  // namespace

void encrypt_starts(const Device& device, Stream stream, const StartEncryption& encryption) {
  if (choose_table_layout(device) == TableLayout::tables_128)
    return launch_starts<Tables128>(device, stream, encryption);
  launch_starts<Tables64>(device, stream, encryption);
}

}  // namespace warpcipher::cuda::lane_table
