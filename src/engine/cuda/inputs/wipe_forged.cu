// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/texts.hpp"

#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 256;

// A tile a warp.
__global__ void __launch_bounds__(threads)
    wipe_forged_kernel(const __grid_constant__ TileList list, std::uint32_t unit_len, const std::uint32_t* verdicts) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (threads / warp_len);
  for (std::uint64_t number = std::uint64_t{blockIdx.x} * (threads / warp_len) + warp_index(); number < list.tiles;
       number += warps) {
    const std::uint32_t message = find_message(list.first_tile, list.messages, list.tiles, number);
    if (verdicts[message] != 0) continue;
    const TileView tile =
        make_tile(list.views[message], message, number, number - list.first_tile[message], tile_units, unit_len);
    const std::uint32_t tile_len = unit_len * tile.units;
    Text text = tile.text;
    text.out_len = text.out_len < tile_len ? text.out_len : tile_len;
    for (std::uint32_t i = lane_index(); 16 * i < text.out_len; i += warp_len) text.store(i, Block{});
  }
}

}  // namespace

void wipe_forged(const Device& device, Stream stream, const TileList& list, std::uint32_t unit_len,
                 const std::uint32_t* verdicts) {
  if (list.tiles == 0) return;
  launch(&wipe_forged_kernel, configuration_of_lanes(device, list.tiles * warp_len, threads, 8), stream, list, unit_len,
         verdicts);
}

}  // namespace warpcipher::cuda
