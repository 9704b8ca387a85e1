// SPDX-License-Identifier: Apache-2.0
// The counter mode of one long message by two kinds of warps of the same block, which keep different pipes busy:
//
//   warps          blocks by                         for 32 blocks
//   0 to 7         logic alone (aes_slices.hpp)      405 operations of the logic pipe, 11 wavefronts
//   8 to 31        lane tables (counter.cuh)          93 operations of the logic pipe, 144 wavefronts
//
// A tile of 256 counters is what either takes next of the block's share, so the pipes set the proportion: about
// one tile in seven goes to the logic. The addresses of the tables come from the multiply pipe (Tables128ByProduct),
// and rounds are a loop in both kinds: the code of two kinds unrolled is more than the instruction caches feed.
#pragma once

#include "cipher/aes_slices.hpp"
#include "engine/cuda/lane_table/cipher.cuh"
#include "engine/cuda/lane_table/counter.cuh"
#include "engine/cuda/lane_table/source.cuh"

namespace warpcipher::cuda::lane_table {

inline constexpr std::uint32_t first_sliced_round = 3;  // those before are shared by a tile

struct HybridSource : SingleSource {
  aes::SlicedKey sliced[14 - first_sliced_round];  // of the rounds from first_sliced_round to the last but one
};

struct HybridPolicy {
  static constexpr std::uint32_t sliced_warps = 8;  // of 32; H200, a prototype: 4 gave 1006, 8 1035 GB/s
  static constexpr std::uint32_t lane_warps = block_threads / warp_len - sliced_warps;
  static constexpr std::uint32_t run = 4;  // tiles that a warp takes at once, but for the last
  static constexpr std::uint32_t singles = 3 * block_threads / warp_len;  // the last, dealt one by one
  static constexpr std::uint32_t many = 1024;  // tiles of a block: a long deal is then not what the others wait for
  // Of these a sliced warp, which needs twice as long for a tile, takes one at most.
  static constexpr std::uint32_t reserved = 2 * lane_warps;
  static constexpr std::size_t shared_len = Tables128ByProduct::shared_len + sizeof(uint4);  // the count behind them
};

// Deals a block's `count` tiles, from number `first` on every stride-th, to the warps of the block. Every lane takes
// part in everything. Run: of how many neighbours a deal is where there are many, but for the last.
template <std::uint32_t Run = HybridPolicy::run>
class TileDealer {
 public:
  __device__ __forceinline__ TileDealer(std::uint32_t first, std::uint32_t count, std::uint32_t stride, bool is_sliced)
      : first_(first),
        stride_(stride),
        count_(count),
        run_(Run > HybridPolicy::run && count_ < HybridPolicy::many ? HybridPolicy::run : Run),
        runs_(count_ > HybridPolicy::singles ? (count_ - HybridPolicy::singles) / run_ : 0),
        enough_(count_) {
    if (is_sliced) enough_ -= count_ / 2 < HybridPolicy::reserved ? count_ / 2 : HybridPolicy::reserved;
  }

  // Every gridDim.x-th of the tiles from `first` to before `end`.
  static __device__ __forceinline__ TileDealer of_grid(std::uint32_t first, std::uint32_t end, bool is_sliced) {
    const std::uint32_t own = first + blockIdx.x;
    return {own, own < end ? (end - own + gridDim.x - 1) / gridDim.x : 0, gridDim.x, is_sliced};
  }

  static __device__ __forceinline__ void begin() {
    if (threadIdx.x == 0) *dealt() = 0;
  }

  // False when none is left for the caller.
  __device__ __forceinline__ bool take(std::uint32_t& tile) {
    if (next_ == end_) {
      if (end_ > enough_) return false;
      std::uint32_t deal = 0;
      if (lane_index() == 0) deal = atomicInc(dealt(), 0xffffffffu);
      deal = from_lane(deal, 0);
      next_ = deal < runs_ ? run_ * deal : deal + (run_ - 1) * runs_;
      if (next_ >= count_) return false;
      end_ = deal < runs_ ? next_ + run_ : next_ + 1;
    }
    tile = first_ + stride_ * next_++;
    return true;
  }

 private:
  static __device__ __forceinline__ std::uint32_t* dealt() {
    return &shared_tables[Tables128ByProduct::shared_len / sizeof(uint4)].x;
  }

  std::uint32_t first_;
  std::uint32_t stride_;
  std::uint32_t count_;
  std::uint32_t run_;
  std::uint32_t runs_;    // deals of run_ tiles; they come first
  std::uint32_t enough_;  // who has had tiles behind these is done
  std::uint32_t next_ = 0;
  std::uint32_t end_ = 0;
};

// Encrypts tiles of 256 whole blocks, the last byte of whose counters begins at 0, by logic. As in CounterMode a lane
// takes the counters whose last byte is `column` + 32 n.
class SlicedCounter {
 public:
  template <class Cipher>
  __device__ __forceinline__ SlicedCounter(const Cipher& cipher, const MessageView& view)
      : lead_(CounterMode::lead(view)), column_(CounterMode::column_of_lane(view)) {
    cipher.last_byte_entries(entries_, column_);
    aes::Slices::slice_entries(entries_);
  }

  template <class Cipher>
  __device__ __forceinline__ void tile(const Cipher& cipher, const HybridSource& source, std::uint32_t tile,
                                       bool wrap_32) const {
    const std::uint64_t first = std::uint64_t{CounterMode::carry} * tile;
    const CommonRounds common = cipher.common_rounds(add_counter(source.view.start, first, wrap_32));
    aes::Slices state = aes::Slices::after_common(entries_, common.first_column, common.second.words);
#pragma unroll 1
    for (std::uint32_t r = first_sliced_round; r < source.rounds; ++r) {
      state.sub_bytes();
      state.mix_columns(source.sliced[r - first_sliced_round]);
    }
    state.sub_bytes();
    std::uint32_t columns[4][8];
    state.get_column<0>(columns[0]);
    state.get_column<1>(columns[1]);
    state.get_column<2>(columns[2]);
    state.get_column<3>(columns[3]);
    const Block last = ParameterKey{source.schedule}.round(source.rounds);
    const std::uint64_t offset = 16 * (first - lead_ + column_);
    const std::uint8_t* const in = global(source.view.in) + offset;
    std::uint8_t* const out = global(source.view.out) + offset;
#pragma unroll
    for (std::uint32_t n = 0; n < 8; n += blocks_in_flight) {
      Block texts[blocks_in_flight];
#pragma unroll
      for (std::uint32_t i = 0; i < blocks_in_flight; ++i) texts[i] = load_aligned(in + 16 * warp_len * (n + i));
#pragma unroll
      for (std::uint32_t i = 0; i < blocks_in_flight; ++i) {
        const Block stream{{columns[0][n + i], columns[1][n + i], columns[2][n + i], columns[3][n + i]}};
        store_aligned(out + 16 * warp_len * (n + i), stream ^ last ^ texts[i]);
      }
    }
  }

 private:
  std::uint32_t lead_;
  std::uint32_t column_;
  std::uint32_t entries_[8];  // what the last byte adds (LaneCipher::last_byte_entries)
};

// A block for each multiprocessor, two or more, of block_threads; parameters.stride is their number. The message has
// three tiles or more, and in and out are multiples of 16.
//
// The first lane warp of the first block begins with the message's first tile, that of the last block with the last:
// their ends may be anywhere.
template <class Tables = Tables128ByProduct>
__global__ void __launch_bounds__(block_threads, 1)
    hybrid_counter_kernel(const __grid_constant__ HybridSource source,
                          const __grid_constant__ CounterParameters parameters) {
  fill_tables<Tables, false>();
  TileDealer<>::begin();
  __syncthreads();
  const ParameterKey key{source.schedule};
  const LaneCipher<Tables, false, 0, ParameterKey> cipher(key, source.rounds);
  const auto tiles = static_cast<std::uint32_t>(source.tiles);
  const std::uint32_t warp = warp_index();
  const bool is_sliced = warp < HybridPolicy::sliced_warps;
  auto dealer = TileDealer<>::of_grid(1, tiles - 1, is_sliced);
  std::uint32_t tile = 0;
  if (is_sliced) {
    if (parameters.verdicts != nullptr && parameters.verdicts[0] == 0) return;  // the others write the zeros
    const SlicedCounter mode(cipher, source.view);
    while (dealer.take(tile)) mode.tile(cipher, source, tile, parameters.wrap_32);
  } else {
    CounterMode mode;
    const bool has_first = warp == HybridPolicy::sliced_warps && blockIdx.x == 0;
    const bool has_last = warp == HybridPolicy::sliced_warps && blockIdx.x == gridDim.x - 1;
    if (has_last) tile = tiles - 1;
    for (bool more = has_first || has_last || dealer.take(tile); more; more = dealer.take(tile)) {
      mode.tile(cipher, source.template find<CounterMode>(tile), parameters);
    }
  }
}
}  // namespace warpcipher::cuda::lane_table
