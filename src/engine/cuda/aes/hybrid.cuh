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
//   kernel                   tiles of
//   hybrid_counter_sm90a.cu  one long message in counter mode
//   hybrid_batch_sm90a.cu    a batch of long messages in counter mode
//   hybrid_packed_sm90a.cu   a batch of short messages of one length in counter mode, several to a tile
//   hybrid_text.cuh          the modes that put text through the cipher
//
// Each kernel has its own loops over tiles, and its own code around the rounds, because their registers are tuned.
#pragma once

#include "cipher/aes_slices.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/source.cuh"

namespace warpcipher::cuda::lane_table {

// Keys of hybrid kernels (hybrid.cuh): one key for all tiles, which is a kernel parameter; or the key of a warp's
// present message, which the warp keeps in shared memory:
//
//   tables   the dealer's count   15 round keys         for each warp   masks for each warp of logic
//   128 KiB  16 bytes             7.5 KiB                               11 KiB: 8 x 4 words a round, from round 3 on
//
// There a warp reads a round key in two wavefronts; in global memory it would take four. Each kind of key has
//
//   Source        the kernel's input
//   first_sliced  the first round that has masks
//   run           how many neighbouring tiles a deal has (TileDealer)
//   begin()       called once, by all lanes: which warp it is
//   hold()        called for a new message: takes the key with that number
//   round(r)      AddRoundKey number r
//   sliced(r)     the same as masks for logic (aes::SlicedKey), in warps of logic
//   wipe()        called at the end

// One key for all tiles. S: a SlicedSource.
template <class S>
struct OnlyKey : ParameterKey {
  using Source = S;
  static constexpr std::uint32_t first_sliced = S::first_sliced;
  static constexpr std::uint32_t run = HybridPolicy::run;
  static constexpr std::size_t shared_len = HybridPolicy::shared_len;

  const aes::SlicedKey* masks;

  explicit __device__ __forceinline__ OnlyKey(const Source& source)
      : ParameterKey{source.schedule}, masks(source.sliced) {}
  __device__ __forceinline__ void begin(std::uint32_t, bool) {}
  __device__ __forceinline__ void hold(const Source&, std::uint32_t) {}
  __device__ __forceinline__ const aes::SlicedKey& sliced(std::uint32_t r) const { return masks[r - first_sliced]; }
  __device__ __forceinline__ void wipe() {}
};

// The key of the warp's present message.
class WarpKey {
 public:
  using Source = BatchSource;
  static constexpr std::uint32_t first_sliced = first_sliced_round;
  static constexpr bool in_registers = false;
  static constexpr std::uint32_t run = 8;  // most deals change the key: H200, 4096 messages of 256 KiB: 1.125 ms with 4

  // Masks of one round in shared memory: of rows 0 and 1, bits 0 to 7, then of rows 2 and 3. With all four rows of a
  // bit adjacent, there would be too few registers.
  class Masks {
   public:
    explicit __device__ __forceinline__ Masks(const uint4* words) : pairs_(reinterpret_cast<const uint2*>(words)) {}
    __device__ __forceinline__ aes::RowMasks of_bit(int i) const {
      const uint2 rows01 = pairs_[i];
      const uint2 rows23 = pairs_[i + 8];
      return {{rows01.x, rows01.y, rows23.x, rows23.y}};
    }

   private:
    const uint2* pairs_;
  };

 private:
  static constexpr std::uint32_t round_keys_begin = HybridPolicy::shared_len / sizeof(uint4);
  static constexpr std::uint32_t masks_begin = round_keys_begin + block_threads / warp_len * most_round_keys;
  static constexpr std::uint32_t masks_of_round = 8;
  static constexpr std::uint32_t masks_of_warp = (most_round_keys - 1 - first_sliced) * masks_of_round;

 public:
  static constexpr std::size_t shared_len = sizeof(uint4) * (masks_begin + HybridPolicy::sliced_warps * masks_of_warp);

  explicit __device__ __forceinline__ WarpKey(const Source&) {}
  __device__ __forceinline__ void begin(std::uint32_t warp, bool is_sliced) {
    warp_ = warp;
    is_sliced_ = is_sliced;
  }

  // Every lane takes part, with the same number.
  __device__ __forceinline__ void hold(const Source& source, std::uint32_t number) {
    __syncwarp();
    if (lane_index() <= source.rounds) round_keys()[lane_index()] = __ldg(source.key_at(number).words + lane_index());
    __syncwarp();
    if (!is_sliced_) return;
    const std::uint32_t row = lane_index() / 16 * 2 + lane_index() % 2;  // the row of the lane's word of the masks
    const aes::MaskBits bits = aes::mask_bits(lane_index() % 16 / 2);
    auto* const words = reinterpret_cast<std::uint32_t*>(masks());
#pragma unroll 1
    for (std::uint32_t r = first_sliced; r < source.rounds; ++r) {
      const Block key = round(r);
      words[4 * masks_of_round * (r - first_sliced) + lane_index()] =
          aes::make_mask(bytes_of_row(key, row), bytes_of_row(key, row ^ 2), bits);
    }
    __syncwarp();
  }

  __device__ __forceinline__ Block round(std::uint32_t r) const {
    const uint4 v = round_keys()[r];
    return {{v.x, v.y, v.z, v.w}};
  }
  __device__ __forceinline__ Masks sliced(std::uint32_t r) const {
    return Masks(masks() + masks_of_round * (r - first_sliced));
  }

  __device__ __forceinline__ void wipe() {
    __syncwarp();
    const uint4 zero = make_uint4(0, 0, 0, 0);
    if (lane_index() < most_round_keys) round_keys()[lane_index()] = zero;
    if (!is_sliced_) return;
    for (std::uint32_t i = lane_index(); i < masks_of_warp; i += warp_len) masks()[i] = zero;
  }

 private:
  __device__ __forceinline__ uint4* round_keys() const {
    return shared_tables + round_keys_begin + most_round_keys * warp_;
  }
  __device__ __forceinline__ uint4* masks() const { return shared_tables + masks_begin + masks_of_warp * warp_; }

  // Byte c is column c's.
  static __device__ __forceinline__ std::uint32_t bytes_of_row(const Block& key, std::uint32_t row) {
    const std::uint32_t selector = 0x40 + 0x11 * row;
    return byte_permute(byte_permute(key.words[0], key.words[1], selector),
                        byte_permute(key.words[2], key.words[3], selector), 0x5410);
  }

  std::uint32_t warp_;
  bool is_sliced_;
};

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
// work(key, cipher, warp) in each warp, and wipes the key. Key: one of those above. cipher: by tables; warps of
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
