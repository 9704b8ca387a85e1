// SPDX-License-Identifier: Apache-2.0
// The frame of hybrid kernels: two kinds of warps in one block, which keep different pipes busy.
//
//   warps          blocks by
//   0 to 7         only logic (aes_slices.hpp)
//   8 to 31        lane tables
//
// A warp of either kind takes the next tile of 256 units when it has finished one, so the speed of the pipes sets the
// proportion: for counters, logic gets about one tile in seven. The addresses of the tables come from the multiply pipe
// (Tables128ByProduct). Rounds are a loop in both kinds: the unrolled code of two kinds would exceed the instruction
// caches.
//
//   kernel                tiles of
//   hybrid_counter.cuh    one long message in counter mode
//   hybrid_batch.cuh      a batch of long messages in counter mode
//   hybrid_packed.cuh     a batch of short messages of one length in counter mode, several to a tile
//   hybrid_text.cuh       the modes that put text through the cipher
//
// Each kernel has its own loops over tiles, and its own code around the rounds, because their registers are tuned.
#pragma once

#include "cipher/aes_slices.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/hybrid_keys.cuh"

namespace warpcipher::cuda::lane_table {

// The number of deals of the block so far, in shared memory.
__device__ __forceinline__ std::uint32_t* count_of_deals() {
  return &shared_tables[Tables128ByProduct::shared_len / sizeof(uint4)].x;
}

// Deals the `count` tiles of a block to its warps: every stride-th tile from number `first` on. Every lane takes part
// in all functions. Run: the tiles of a deal if there are many tiles. The last deals have one tile each.
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

  // Every gridDim.x-th tile from `first` on, before `end`.
  static __device__ __forceinline__ TileDealer of_grid(std::uint32_t first, std::uint32_t end, bool is_sliced) {
    const std::uint32_t own = first + blockIdx.x;
    return {own, own < end ? (end - own + gridDim.x - 1) / gridDim.x : 0, gridDim.x, is_sliced};
  }

  // The block's share of `tiles` tiles: consecutive ones.
  static __device__ __forceinline__ TileDealer of_neighbours(std::uint64_t tiles, bool is_sliced) {
    const auto first = from_lane(static_cast<std::uint32_t>(tiles * blockIdx.x / gridDim.x), 0);
    const auto end = from_lane(static_cast<std::uint32_t>(tiles * (blockIdx.x + 1) / gridDim.x), 0);
    return {first, end - first, 1, is_sliced};
  }

  // False: no tile is left for the caller.
  __device__ __forceinline__ bool take(std::uint32_t& tile) {
    if (next_ == end_) {
      if (end_ > enough_) return false;
      std::uint32_t deal = 0;
      if (lane_index() == 0) deal = atomicInc(count_of_deals(), 0xffffffffu);
      deal = from_lane(deal, 0);
      next_ = deal < runs_ ? run_ * deal : deal + (run_ - 1) * runs_;
      if (next_ >= count_) return false;
      end_ = deal < runs_ ? next_ + run_ : next_ + 1;
    }
    tile = first_ + stride_ * next_++;
    return true;
  }

 private:
  std::uint32_t first_;
  std::uint32_t stride_;
  std::uint32_t count_;
  std::uint32_t run_;
  std::uint32_t runs_;    // deals of run_ tiles; they come first
  std::uint32_t enough_;  // a warp stops after taking a tile beyond this one
  std::uint32_t next_ = 0;
  std::uint32_t end_ = 0;
};

// A warp of a hybrid kernel.
struct HybridWarp {
  std::uint32_t number;  // in its block
  bool is_sliced;        // works by logic
};

// The body of every hybrid kernel, with a block of block_threads on each multiprocessor: fills the tables, calls
// work(key, cipher, warp) in each warp, and wipes the key. Key: one of hybrid_keys.cuh. cipher: by tables; warps of
// logic use it for the rounds before their own.
template <class Key, bool Inverse, class Work>
__device__ __forceinline__ void run_hybrid(const typename Key::Source& source, Work&& work) {
  fill_tables<Tables128ByProduct, Inverse>();
  if (threadIdx.x == 0) *count_of_deals() = 0;
  __syncthreads();
  Key key(source);
  const LaneCipher<Tables128ByProduct, Inverse, 0, Key> cipher(key, source.rounds);
  const std::uint32_t number = warp_index();
  const HybridWarp warp{number, number < HybridPolicy::sliced_warps};
  key.begin(warp.number, warp.is_sliced);
  work(key, cipher, warp);
  key.wipe();
}

// The rounds of logic, from the first for which `key` has masks to the last without its AddRoundKey. Afterwards
// columns[c][n] is column c of the lane's block n.
template <bool Inverse, class Key>
__device__ __forceinline__ void run_sliced_rounds(aes::Slices& state, const Key& key, std::uint32_t rounds,
                                                  std::uint32_t (&columns)[4][8]) {
#pragma unroll 1
  for (std::uint32_t r = Key::first_sliced; r < rounds; ++r) {
    state.sub_bytes<Inverse>();
    state.mix_columns<Inverse>(key.sliced(r));
  }
  state.sub_bytes<Inverse>();
  state.get_column<0, Inverse>(columns[0]);
  state.get_column<1, Inverse>(columns[1]);
  state.get_column<2, Inverse>(columns[2]);
  state.get_column<3, Inverse>(columns[3]);
}

// The lane's blocks after them. last: the last AddRoundKey.
__device__ __forceinline__ void finish_sliced(const std::uint32_t (&columns)[4][8], const Block& last,
                                              Block (&blocks)[8]) {
#pragma unroll
  for (std::uint32_t n = 0; n < 8; ++n) {
    blocks[n] = Block{{columns[0][n], columns[1][n], columns[2][n], columns[3][n]}} ^ last;
  }
}

}  // namespace warpcipher::cuda::lane_table
