// SPDX-License-Identifier: Apache-2.0
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
#pragma once

#include "cipher/aes_slices.hpp"
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/source.cuh"

namespace warpcipher::cuda::lane_table {

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

}  // namespace warpcipher::cuda::lane_table
