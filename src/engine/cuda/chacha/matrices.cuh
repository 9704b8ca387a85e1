// SPDX-License-Identifier: Apache-2.0
// Poly1305 as a product of matrices of bytes on tensor cores.
//
// A lane has 64 bytes of ciphertext in registers, as it has enciphered them: blocks m_0 to m_3. Those registers are an
// A fragment of the product as they are, 32 bytes of two rows for each block:
//
//             k = 0..15             k = 16..31
//   row g     word 0 of m_s         word 2              lanes l = 4 g + t, t = 0..3: 16 bytes of k are 4 bytes of each
//   row g+8   word 1                word 3              row g + 8 counts 2^32 times as much
//
// The B fragment has, for byte b of a word, the number r^e 2^(8 b), or r^e 2^(64 + 8 b) for the words 2 and 3: its
// bytes, one in each of 20 columns. So C has the sum of all products, a column a byte:
//
//   sum of the tile = sum over g of r^(16 (7 - g)) sum over columns of 2^(8 column) (C[g] + 2^32 C[g + 8])
//
// C adds up over the tiles of a segment, whose matrices have r^128 times as much as the next. Only at its end does a
// lane make a number of its columns, and multiply it.
#pragma once

#include "engine/cuda/chacha/elements.cuh"
#include "engine/cuda/chacha/instructions.cuh"
#include "engine/cuda/chacha/text.cuh"

namespace warpcipher::cuda::chacha {

inline constexpr std::uint32_t chunk_threads = warps_of_chunk * warp_len;

// Shared memory of a block of threads.
struct Matrices {
  static constexpr std::uint32_t fragments = tiles_of_segment * hash_blocks_of_block * warp_len;

  uint4 first[fragments];              // columns 0 to 15: what a lane takes for a block m_s of a tile
  uint2 second[fragments];             // columns 16 to 23
  std::uint32_t factors[5][warp_len];  // of the lane's number: r^(16 (7 - g)) 2^(16 t)
  Element turn;
  Element sums[warps_of_chunk];
};

// The bytes of a number, below 2^130.
struct Bytes {
  std::uint32_t words[5];

  // Bytes n, n - 1, n - 2, n - 3, from the lowest; zeros outside.
  __device__ __forceinline__ std::uint32_t window(std::uint32_t n) const {
    const std::uint32_t word = n / 4, shift = n % 4;
    const std::uint32_t below = word == 0 || word > 5 ? 0 : words[word - 1];
    const std::uint32_t here = word > 4 ? 0 : words[word];
    return byte_permute(below, here, (4 + shift) | (3 + shift) << 4 | (2 + shift) << 8 | (1 + shift) << 12);
  }
};

__device__ __forceinline__ Bytes to_bytes(const Element& x) {
  std::uint32_t limbs[5];
  std::uint32_t carry = 0;
#pragma unroll
  for (int i = 0; i < 5; ++i) limbs[i] = x.limbs[i];
#pragma unroll
  for (int round = 0; round < 2; ++round) {
#pragma unroll
    for (int i = 0; i < 5; ++i) {
      limbs[i] += carry;
      carry = limbs[i] >> 26;
      limbs[i] &= limb_mask;
    }
    carry *= 5;
  }
  limbs[0] += carry;  // 0: after the first round at most limb 0 and those that its carry meets were not below 2^26
  return {{limbs[0] | limbs[1] << 26, limbs[1] >> 6 | limbs[2] << 20, limbs[2] >> 12 | limbs[3] << 14,
           limbs[3] >> 18 | limbs[4] << 8, limbs[4] >> 24}};
}

// By all threads of a block; barriers before and after are the caller's.
__device__ __forceinline__ void make_matrices(Matrices& matrices, const Factors& factors, std::uint32_t message) {
  constexpr std::uint32_t blocks_of_group = 4 * hash_blocks_of_block;  // of the lanes 4 g to 4 g + 3
#pragma unroll 1
  for (std::uint32_t n = threadIdx.x; n < tiles_of_segment * blocks_of_group; n += chunk_threads) {
    const std::uint32_t tile = n / blocks_of_group, block = n % blocks_of_group;
    const std::uint32_t t = block / hash_blocks_of_block, s = block % hash_blocks_of_block;
    const Element power = multiply(load_factor(factors, message, Factors::blocks + blocks_of_group - 1 - block),
                                   load_factor(factors, message, Factors::tiles + tiles_of_segment - 1 - tile));
    const Bytes low = to_bytes(power);
    const Bytes high = to_bytes(multiply(power, two_to_64()));
#pragma unroll
    for (std::uint32_t g = 0; g < 8; ++g) {
      const std::uint32_t at = (tile * hash_blocks_of_block + s) * warp_len + 4 * g + t;
      matrices.first[at] = make_uint4(low.window(g), high.window(g), low.window(8 + g), high.window(8 + g));
      matrices.second[at] = make_uint2(low.window(16 + g), high.window(16 + g));
    }
  }
  if (threadIdx.x < warp_len) {
    const std::uint32_t g = threadIdx.x / 4, t = threadIdx.x % 4;
    const Element shift{{t == 0 ? 1u : t == 1 ? 1u << 16 : 0u, t == 2 ? 1u << 6 : t == 3 ? 1u << 22 : 0u, 0, 0, 0}};
    const Element factor = multiply(load_factor(factors, message, Factors::rows + 7 - g), shift);
#pragma unroll
    for (int i = 0; i < 5; ++i) matrices.factors[i][threadIdx.x] = factor.limbs[i];
    if (threadIdx.x == 0) matrices.turn = load_factor(factors, message, Factors::turn);
  }
}

// The columns of a lane: C, for columns 0 to 7, 8 to 15, 16 to 23.
struct Columns {
  std::int32_t counts[3][4] = {};

  __device__ __forceinline__ void add(const Matrices& matrices, std::uint32_t tile, const Text64& text) {
    const uint4* const of_first = matrices.first + tile * hash_blocks_of_block * warp_len + lane_index();
    const uint2* const of_second = matrices.second + tile * hash_blocks_of_block * warp_len + lane_index();
#pragma unroll
    for (std::uint32_t s = 0; s < hash_blocks_of_block; ++s) {
      const uint4 first = of_first[s * warp_len];
      const uint2 second = of_second[s * warp_len];
      multiply_bytes(counts[0], text.quarters[s], first.x, first.y);
      multiply_bytes(counts[1], text.quarters[s], first.z, first.w);
      multiply_bytes(counts[2], text.quarters[s], second.x, second.y);
    }
  }

  // The number, but for the lane's factor. A count is below 128 * 8 * 255^2 < 2^26, so two columns are below 2^35.
  // Their bit 0 is bit 0, 32, 64, 96, 128 and 160 of the number; 2^130 = 5.
  __device__ __forceinline__ Element number() const {
    static_assert(tiles_of_segment <= 8, "more tiles have larger counts");
    std::uint64_t pairs[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
      const std::int32_t(&c)[4] = counts[i / 2];
      const auto low = static_cast<std::uint32_t>(c[i % 2 * 2]), high = static_cast<std::uint32_t>(c[i % 2 * 2 + 1]);
      pairs[i] = low + (std::uint64_t{high} << 8);
    }
    const std::uint64_t at_52 = pairs[2] << 12, at_26 = pairs[1] << 6, at_78 = pairs[3] << 18, at_104 = pairs[4] << 24;
    Product sum;
    sum.limbs[0] = (pairs[0] & limb_mask) + 5 * (at_104 >> 26);
    sum.limbs[1] = (pairs[0] >> 26) + (at_26 & limb_mask) + 5 * (pairs[5] << 4);
    sum.limbs[2] = (at_26 >> 26) + (at_52 & limb_mask);
    sum.limbs[3] = (at_52 >> 26) + (at_78 & limb_mask);
    sum.limbs[4] = (at_78 >> 26) + (at_104 & limb_mask);
    return poly1305::reduce(sum);
  }
};

}  // namespace warpcipher::cuda::chacha
