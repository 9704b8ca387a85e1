// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/texts.hpp"

#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/launch.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t padding_threads = 128;

// As padding_len() in src/dispatch/run.cpp, for the last `block_len` bytes of a block of 16.
__device__ __forceinline__ std::uint32_t padding_len(const Block& block, std::uint32_t block_len) {
  const std::uint32_t n = block.words[3] >> 24;
  std::uint32_t bad = static_cast<std::uint32_t>(n == 0) | static_cast<std::uint32_t>(n > block_len);
#pragma unroll
  for (std::uint32_t i = 0; i < 16; ++i) {
    const auto in_padding = static_cast<std::uint32_t>(i + n >= 16);
    bad |= in_padding * (get_byte(block, i) ^ n);
  }
  return bad == 0 ? n : 0;
}

// Every lane of the warp takes part.
__device__ __forceinline__ void wipe_text(std::uint8_t* text, std::uint64_t len) {
  std::uint64_t done = 0;
  if (reinterpret_cast<std::uintptr_t>(text) % 16 == 0) {
    done = len / 16 * 16;
    for (std::uint64_t i = 16 * lane_index(); i < done; i += 16 * warp_len) store_aligned(text + i, Block{});
  }
  for (std::uint64_t i = done + lane_index(); i < len; i += warp_len) text[i] = 0;
}

__global__ void __launch_bounds__(padding_threads)
    padding_kernel(const MessageView* views, std::uint32_t messages, std::uint32_t* lengths) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t own = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::uint64_t first = own - lane_index(); first < messages; first += stride) {
    const std::uint64_t message = first + lane_index();
    const bool is_there = message < messages;
    bool failed = false;
    if (is_there) {
      const MessageView& view = views[message];
      const std::uint32_t block_len = view.out_len == 8 * view.units ? 8 : 16;
      const std::uint8_t* const last = global(view.out) + view.out_len - block_len;
      Block block = load_bytes(last, block_len);
      if (block_len == 8) block = {{0, 0, block.words[0], block.words[1]}};
      const std::uint32_t len = padding_len(block, block_len);
      lengths[message] = len;
      failed = len == 0;
    }
    for (std::uint32_t left = lanes_with(failed); left != 0; left &= left - 1) {
      const MessageView& view = views[first + static_cast<std::uint32_t>(__ffs(static_cast<int>(left)) - 1)];
      wipe_text(global(view.out), view.out_len);
    }
  }
}

}  // namespace

void take_padding_off(const Device& device, Stream stream, const MessageView* views, std::uint32_t messages,
                      std::uint32_t* lengths) {
  launch(&padding_kernel, configuration_of_lanes(device, messages, padding_threads, 16), stream, views, messages,
         lengths);
}

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

namespace {

constexpr std::uint32_t wiping_threads = 256;

// A tile a warp.
__global__ void __launch_bounds__(wiping_threads)
    wipe_forged_kernel(const __grid_constant__ TileList list, std::uint32_t unit_len, const std::uint32_t* verdicts) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (wiping_threads / warp_len);
  for (std::uint64_t number = std::uint64_t{blockIdx.x} * (wiping_threads / warp_len) + warp_index();
       number < list.tiles; number += warps) {
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
  launch(&wipe_forged_kernel, configuration_of_lanes(device, list.tiles * warp_len, wiping_threads, 8), stream, list,
         unit_len, verdicts);
}

}  // namespace warpcipher::cuda
