// SPDX-License-Identifier: Apache-2.0
// The counter mode of a batch of long messages that share a key, by two kinds of warps of the same block (mixed.cuh).
// Its tiles begin and end anywhere, so logic encrypts any counters (SlicedText), from the first round on; tables have
// the common rounds of neighbouring tiles of a message (counter.cuh), so deals are of neighbours.
#pragma once

#include "engine/cuda/lane_table/mixed_text.cuh"

namespace warpcipher::cuda::lane_table {

// 256 blocks of a tile of whole blocks, from `done` on, or those that are left.
template <>
class SlicedText<CounterMode> {
 public:
  __device__ __forceinline__ SlicedText(const Tile& tile, std::uint32_t done, bool wrap_32)
      : counter_(add_counter(tile.view.start, tile.first_unit + done + lane_index(), wrap_32)),
        in_(tile.text.in + 16 * (done + lane_index())),
        out_(tile.text.out + 16 * (done + lane_index())),
        rows_((tile.units - done - lane_index() + warp_len - 1) / warp_len),
        wrap_32_(wrap_32) {}
  __device__ __forceinline__ Block load(std::uint32_t n) const { return add_counter(counter_, warp_len * n, wrap_32_); }
  __device__ __forceinline__ void store(std::uint32_t first, Block (&blocks)[blocks_in_flight]) const {
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
      if (has(first + n)) blocks[n] = blocks[n] ^ load_aligned(in_ + TileRows::row_len * (first + n));
    }
#pragma unroll
    for (std::uint32_t n = 0; n < blocks_in_flight; ++n) {
      if (has(first + n)) store_aligned(out_ + TileRows::row_len * (first + n), blocks[n]);
    }
  }

 private:
  __device__ __forceinline__ bool has(std::uint32_t n) const { return static_cast<std::int32_t>(n) < rows_; }

  Block counter_;
  const std::uint8_t* in_;
  std::uint8_t* out_;
  std::int32_t rows_;  // of which the lane has a block; none or less where its first is behind the end
  bool wrap_32_;
};

// The tile of that number, which all lanes ask for. Not by find_message: where the compiler cannot know that all leave
// a loop at once, what lanes tell each other in it costs the registers that a warp has in common.
__device__ __forceinline__ Tile find_alike(const MessageList& list, std::uint32_t number) {
  const std::uint32_t message = find_message_alone(list.first_tile, list.messages, list.tiles, number);
  const MessageView& view = list.views[message];
  return make_tile(view, message, number, number - list.first_tile[message], tile_units, CounterMode::unit_len,
                   CounterMode::lead(view));
}

// A block for each multiprocessor, of block_threads.
template <class Source>
__global__ void __launch_bounds__(block_threads, 1)
    mixed_batch_kernel(const __grid_constant__ SlicedSource<Source> source,
                       const __grid_constant__ CounterParameters parameters) {
  using Tables = Tables128ByProduct;
  fill_tables<Tables, false>();
  TileDealer::begin();
  __syncthreads();
  const ParameterKey key{source.schedule};
  const LaneCipher<Tables, false, 0, ParameterKey> cipher(key, source.rounds);
  const bool is_sliced = warp_index() < MixedShape::sliced_warps;
  const auto first = static_cast<std::uint32_t>(source.tiles * blockIdx.x / gridDim.x);
  const auto end = static_cast<std::uint32_t>(source.tiles * (blockIdx.x + 1) / gridDim.x);
  TileDealer dealer(first, end - first, 1, is_sliced);
  std::uint32_t number = 0;
  if (is_sliced) {
    while (dealer.take(number)) {
      const Tile tile = find_alike(source, number);
      const bool is_good = parameters.verdicts == nullptr || parameters.verdicts[tile.message] != 0;
      if (all_lanes(is_good && tile.text.aligned && tile.text.in_len >= 16 * tile.units)) {
        const std::uint32_t units = from_lane(tile.units, 0);
        for (std::uint32_t done = 0; done < units; done += tile_units) {
          run_sliced<CounterMode>(source, SlicedText<CounterMode>(tile, done, parameters.wrap_32));
        }
      } else {
        CounterMode mode;
        mode.tile(cipher, tile, parameters);
      }
    }
  } else {
    CounterMode mode;
    while (dealer.take(number)) {
      const Tile found = find_alike(source, number);
      const Text& text = found.text;
      MessageView view = found.view;
      view.start.words[3] = from_lane(view.start.words[3], 0);
      const Tile tile{found.number,
                      std::uint64_t{from_lane(static_cast<std::uint32_t>(found.first_unit >> 32), 0)} << 32 |
                          from_lane(static_cast<std::uint32_t>(found.first_unit), 0),
                      from_lane(found.units, 0),
                      from_lane(found.message, 0),
                      view,
                      {text.in, text.out, from_lane(text.in_len, 0), from_lane(text.out_len, 0), text.pad,
                       all_lanes(text.aligned)}};
      mode.tile(cipher, tile, parameters);
    }
  }
}

}  // namespace warpcipher::cuda::lane_table
