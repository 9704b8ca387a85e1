// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/texts.hpp"

#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 128;

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

__global__ void __launch_bounds__(threads)
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
  launch(&padding_kernel, configuration_of_lanes(device, messages, threads, 16), stream, views, messages, lengths);
}

}  // namespace warpcipher::cuda
