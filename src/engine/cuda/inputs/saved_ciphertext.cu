// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/texts.hpp"

#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher::cuda {
namespace {

__global__ void save_ciphertext_kernel(const __grid_constant__ TileList list, std::uint32_t block_len,
                                       std::uint32_t tile_len, Block* saved_ciphertext) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t tile = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; tile < list.tiles; tile += stride) {
    const std::uint32_t message = find_message_alone(list.first_tile, list.messages, list.tiles, tile);
    const std::uint64_t number = tile - list.first_tile[message];
    saved_ciphertext[tile] =
        number == 0 ? list.views[message].start
                    : load_bytes(global(list.views[message].in) + number * tile_len - block_len, block_len);
  }
}

}  // namespace

bool reads_previous_block(const Algorithm& algorithm, Direction direction) {
  return direction == Direction::decrypt && algorithm.mode.reads_previous_block;
}

void save_ciphertext(const Device& device, Stream stream, const Algorithm& algorithm, const TileList& list,
                     Block* saved_ciphertext) {
  launch(&save_ciphertext_kernel, configuration_of_lanes(device, list.tiles, 256, 8), stream, list,
         static_cast<std::uint32_t>(algorithm.block_len()),
         tile_units * static_cast<std::uint32_t>(algorithm.unit_len()), saved_ciphertext);
}

}  // namespace warpcipher::cuda
