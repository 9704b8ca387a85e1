// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chains.cuh"

namespace warpcipher::cuda {
namespace {

__global__ void save_chains_kernel(const MessageView* views, const std::uint64_t* first_tile, std::uint32_t messages,
                                   std::uint64_t tiles, std::uint32_t block_len, std::uint32_t tile_len,
                                   Block* chains) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t tile = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; tile < tiles; tile += stride) {
    const std::uint32_t message = find_message_alone(first_tile, messages, tiles, tile);
    const std::uint64_t number = tile - first_tile[message];
    chains[tile] = number == 0 ? views[message].start
                               : load_bytes(global(views[message].in) + number * tile_len - block_len, block_len);
  }
}

}  // namespace

void save_chains(const GroupRun& run, const MessageView* views, const std::uint64_t* first_tile,
                 std::uint32_t tile_units, Block* chains) {
  constexpr std::uint32_t threads = 256;
  const std::uint64_t wanted = (run.group.tiles() + threads - 1) / threads;
  const std::uint64_t most = 8 * run.device.multiprocessors;
  const Algorithm& algorithm = *run.group.algorithm;
  launch(&save_chains_kernel, {static_cast<std::uint32_t>(wanted < most ? wanted : most), threads}, run.stream, views,
         first_tile, static_cast<std::uint32_t>(run.group.messages.size()), run.group.tiles(),
         static_cast<std::uint32_t>(algorithm.block_len()),
         tile_units * static_cast<std::uint32_t>(algorithm.unit_len()), chains);
}

bool needs_chains(const GroupRun& run) {
  const Mode mode = run.group.algorithm->mode.id;
  if (run.group.direction != Direction::decrypt) return false;
  if (mode != Mode::cbc && mode != Mode::cfb && mode != Mode::cfb8) return false;
  for (std::size_t i = 0; i < run.group.messages.size(); ++i) {
    if (run.message(i).in == run.message(i).out) return true;
  }
  return false;
}

}  // namespace warpcipher::cuda
