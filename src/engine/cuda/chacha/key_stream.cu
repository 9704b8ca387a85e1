// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/launches.hpp"

#include "engine/cuda/chacha/rounds.cuh"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::chacha {
namespace {

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t blocks_of_multiprocessor = 4;  // 64 registers a lane
constexpr std::uint32_t packed_lanes = 4;              // of a message

// Block `block` of a message, from 0.
__device__ __forceinline__ void run_block(const MessageView& view, const KeyStream& stream, std::uint64_t block) {
  const std::uint64_t offset = block * block_len;
  const std::uint8_t* const in = global(view.in) + offset;
  std::uint8_t* const out = global(view.out) + offset;
  const std::uint32_t len = cut_to_32_bits(view.in_len - offset);
  const bool aligned = are_aligned(in, out);
  Text64 text = load_text(in, len, aligned);
  std::uint32_t x[16];
  make_key_stream<3>(&stream, stream.counter + static_cast<std::uint32_t>(block), x);
  add_key_stream(text, x);
  store_text(out, len, aligned, text);
}

// 256 whole blocks from `first` on, in text that is aligned. As much as possible is computed before the loop: a
// conditional load and a new address for each block took 38 instructions of the logic pipe, of 670 in all.
__device__ __forceinline__ void run_whole_tile(const MessageView& view, const KeyStream& stream, std::uint64_t first) {
  first += lane_index();
  const std::uint8_t* in = global(view.in) + first * block_len;
  std::uint8_t* out = global(view.out) + first * block_len;
  std::uint32_t counter = stream.counter + static_cast<std::uint32_t>(first);
#pragma unroll 1
  for (std::uint32_t i = 0; i < tile_units; i += warp_len) {
    Text64 text = load_text(in, block_len, true);
    std::uint32_t x[16];
    make_key_stream<3>(&stream, counter, x);
    add_key_stream(text, x);
    store_text(out, block_len, true, text);
    in += warp_len * block_len;
    out += warp_len * block_len;
    counter += warp_len;
  }
}

// Of the tiles of a warp, those that are whole and aligned, or all others.
template <bool Whole>
__device__ __forceinline__ void run_tiles_of_warp(const Batch& batch) {
  const auto tiles = static_cast<std::uint32_t>(batch.tiles);
  const std::uint32_t warps = gridDim.x * (threads / warp_len);
  for (std::uint32_t tile = blockIdx.x * (threads / warp_len) + warp_index(); tile < tiles; tile += warps) {
    const std::uint32_t message = find_message(batch.first_tile, batch.messages, batch.tiles, tile);
    const MessageView& view = batch.views[message];
    const std::uint64_t first = (tile - batch.first_tile[message]) * tile_units;
    const bool is_whole = view.in_len >= (first + tile_units) * block_len && are_aligned(view.in, view.out);
    if (is_whole != Whole) continue;
    if constexpr (Whole) {
      run_whole_tile(view, batch.streams[message], first);
    } else {
      const std::uint64_t left = view.units - first;
      const std::uint32_t blocks = left < tile_units ? static_cast<std::uint32_t>(left) : tile_units;
#pragma unroll 1
      for (std::uint32_t i = lane_index(); i < blocks; i += warp_len) {
        run_block(view, batch.streams[message], first + i);
      }
    }
  }
}

// In turn: in one loop, both would take more registers than there are.
__global__ void __launch_bounds__(threads, blocks_of_multiprocessor) run_tiles(const __grid_constant__ Batch batch) {
  run_tiles_of_warp<true>(batch);
  run_tiles_of_warp<false>(batch);
}

__global__ void __launch_bounds__(threads, blocks_of_multiprocessor) run_packed(const __grid_constant__ Batch batch) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * threads / packed_lanes;
  for (std::uint64_t message = (std::uint64_t{blockIdx.x} * threads + threadIdx.x) / packed_lanes;
       message < batch.messages; message += stride) {
    const MessageView& view = batch.views[message];
#pragma unroll 1
    for (std::uint64_t block = threadIdx.x % packed_lanes; block < view.units; block += packed_lanes) {
      run_block(view, batch.streams[message], block);
    }
  }
}

}  // namespace

void add_key_streams(const Device& device, Stream stream, StreamKernel kernel, const Batch& batch) {
  if (batch.tiles == 0) return;
  if (kernel == StreamKernel::packed) {
    const std::uint64_t lanes = std::uint64_t{batch.messages} * packed_lanes;
    return launch(&run_packed, configuration_of_lanes(device, lanes, threads, blocks_of_multiprocessor), stream, batch);
  }
  launch(&run_tiles, configuration_of_lanes(device, batch.tiles * warp_len, threads, blocks_of_multiprocessor), stream,
         batch);
}

}  // namespace warpcipher::cuda::chacha
