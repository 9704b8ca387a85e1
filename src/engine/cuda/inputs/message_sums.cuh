// SPDX-License-Identifier: Apache-2.0
// The plan's counts of each message of a columnar batch (summary.hpp), and sums of it over lanes.
#pragma once

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "mode/padding.hpp"

namespace warpcipher::cuda {

inline constexpr std::uint64_t sum_limit = std::uint64_t{1} << 62;

__device__ __forceinline__ std::uint64_t add_to_limit(std::uint64_t a, std::uint64_t b) {
  return a + b < sum_limit ? a + b : sum_limit;
}

__device__ __forceinline__ Sums add(const Sums& a, const Sums& b) {
  return {add_to_limit(a.in, b.in), add_to_limit(a.out, b.out), add_to_limit(a.tiles, b.tiles),
          add_to_limit(a.chunks, b.chunks)};
}

__device__ __forceinline__ Sums from_lane_xor(const Sums& a, std::uint32_t mask) {
  return {cuda::from_lane_xor(a.in, mask), cuda::from_lane_xor(a.out, mask), cuda::from_lane_xor(a.tiles, mask),
          cuda::from_lane_xor(a.chunks, mask)};
}

__device__ __forceinline__ Sums from_lane_below(const Sums& a, std::uint32_t distance) {
  return {cuda::from_lane_below(a.in, distance), cuda::from_lane_below(a.out, distance),
          cuda::from_lane_below(a.tiles, distance), cuda::from_lane_below(a.chunks, distance)};
}

__device__ __forceinline__ std::uint64_t highest(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }

__device__ __forceinline__ Sums last_of_lanes(const Sums& a) {
  return {from_lane(a.in, warp_len - 1), from_lane(a.out, warp_len - 1), from_lane(a.tiles, warp_len - 1),
          from_lane(a.chunks, warp_len - 1)};
}

// Whether numbers of all lanes have so few bits that 32 of them hold the sums over a warp.
__device__ __forceinline__ bool are_small(std::uint64_t bits) { return all_lanes(bits >> 27 == 0); }

__device__ __forceinline__ std::uint64_t bits_of(const Sums& a) { return a.in | a.out | a.tiles | a.chunks; }

// Inclusive sums over the lanes. Small numbers take a third of the instructions.
__device__ __forceinline__ Sums scan_lanes(Sums sums) {
  if (are_small(bits_of(sums))) {
    std::uint32_t numbers[4] = {static_cast<std::uint32_t>(sums.in), static_cast<std::uint32_t>(sums.out),
                                static_cast<std::uint32_t>(sums.tiles), static_cast<std::uint32_t>(sums.chunks)};
#pragma unroll
    for (std::uint32_t distance = 1; distance < warp_len; distance *= 2) {
#pragma unroll
      for (std::uint32_t& number : numbers) {
        const std::uint32_t below = cuda::from_lane_below(number, distance);
        if (lane_index() >= distance) number += below;
      }
    }
    return {numbers[0], numbers[1], numbers[2], numbers[3]};
  }
#pragma unroll
  for (std::uint32_t distance = 1; distance < warp_len; distance *= 2) {
    const Sums below = from_lane_below(sums, distance);
    if (lane_index() >= distance) sums = add(sums, below);
  }
  return sums;
}

// Lengths of a message, limited so that the sum of two does not overflow. A length above the limit is wrong anyway.
struct Lengths {
  std::uint64_t in;
  std::uint64_t text;
  std::uint64_t padded;
  std::uint64_t out;
  std::uint64_t aad;
  std::uint64_t chunk_blocks;  // 0: no GHASH
  std::uint64_t least_chunked;
  std::uint32_t unit_log;
  std::uint32_t lead = 0;  // where tiles lack ends
  bool steals;
  bool lacks_ends;

  __device__ __forceinline__ Lengths(const ColumnView& c, std::uint32_t i)
      : aad(c.aad_lengths != nullptr ? c.aad_lengths[i] : c.aad_len),
        chunk_blocks(c.chunk_blocks),
        least_chunked(c.least_chunked),
        unit_log(c.unit_log),
        steals(c.steals),
        lacks_ends(c.lacks_ends) {
    // GCM's text begins with counter 2. Other counters are IVs.
    if (lacks_ends) lead = c.is_aead ? 2 : global(c.ivs)[std::uint64_t{16} * i + 15];
    const std::uint64_t len = c.in_len_at(i);
    in = len < sum_limit ? len : sum_limit;
    text = c.encrypting ? in : in < c.tag_len ? 0 : in - c.tag_len;
    padded = output_len(text, c.pads, 1u << c.block_log);
    out = c.encrypting ? padded + c.tag_len : text;
  }

  __device__ __forceinline__ std::uint64_t units() const {
    return (steals ? padded : padded + (1u << unit_log) - 1) >> unit_log;
  }
  __device__ __forceinline__ std::uint64_t units_of_tiles() const {
    return lacks_ends ? units_before_end(padded, lead) : units();
  }
  __device__ __forceinline__ std::uint64_t hash_blocks() const {
    return (padded + 15) / 16 + aad / 16 + (aad % 16 != 0);
  }
  __device__ __forceinline__ bool is_in_rows() const { return hash_blocks() < least_chunked; }
  __device__ __forceinline__ Sums sums() const {
    return {in, out, (units_of_tiles() + tile_units - 1) / tile_units,
            chunk_blocks == 0 || is_in_rows() ? 0 : (hash_blocks() + chunk_blocks - 1) / chunk_blocks};
  }
};

// The counts of a warp or a block.
struct Totals {
  Sums sums;
  std::uint64_t units;
  std::uint64_t most_units;
  std::uint64_t hash_blocks;
  std::uint64_t most_hash_blocks;
  std::uint64_t end_units;
  std::uint64_t row_blocks;
  std::uint32_t in_rows;

  __device__ __forceinline__ static Totals of(const Lengths& lengths) {
    const bool is_in_rows = lengths.is_in_rows();
    return {lengths.sums(),
            lengths.units(),
            lengths.units(),
            lengths.hash_blocks(),
            lengths.hash_blocks(),
            lengths.units() - lengths.units_of_tiles(),
            is_in_rows ? lengths.hash_blocks() : 0,
            is_in_rows};
  }
};

__device__ __forceinline__ Totals add(const Totals& a, const Totals& b) {
  return {add(a.sums, b.sums),
          add_to_limit(a.units, b.units),
          highest(a.most_units, b.most_units),
          add_to_limit(a.hash_blocks, b.hash_blocks),
          highest(a.most_hash_blocks, b.most_hash_blocks),
          add_to_limit(a.end_units, b.end_units),
          add_to_limit(a.row_blocks, b.row_blocks),
          a.in_rows + b.in_rows};
}

__device__ __forceinline__ Totals from_lane_xor(const Totals& a, std::uint32_t mask) {
  return {from_lane_xor(a.sums, mask),
          cuda::from_lane_xor(a.units, mask),
          cuda::from_lane_xor(a.most_units, mask),
          cuda::from_lane_xor(a.hash_blocks, mask),
          cuda::from_lane_xor(a.most_hash_blocks, mask),
          cuda::from_lane_xor(a.end_units, mask),
          cuda::from_lane_xor(a.row_blocks, mask),
          cuda::from_lane_xor(a.in_rows, mask)};
}

// Of all lanes, in each of them. Small numbers take a quarter of the instructions.
__device__ __forceinline__ Totals sum_of_lanes(Totals own) {
  if (are_small(bits_of(own.sums) | own.units | own.hash_blocks)) {  // the others are parts of these, or 1
    std::uint32_t added[9] = {static_cast<std::uint32_t>(own.sums.in),
                              static_cast<std::uint32_t>(own.sums.out),
                              static_cast<std::uint32_t>(own.sums.tiles),
                              static_cast<std::uint32_t>(own.sums.chunks),
                              static_cast<std::uint32_t>(own.units),
                              static_cast<std::uint32_t>(own.hash_blocks),
                              static_cast<std::uint32_t>(own.end_units),
                              static_cast<std::uint32_t>(own.row_blocks),
                              own.in_rows};
    std::uint32_t most[2] = {static_cast<std::uint32_t>(own.most_units),
                             static_cast<std::uint32_t>(own.most_hash_blocks)};
#pragma unroll
    for (std::uint32_t mask = 1; mask < warp_len; mask *= 2) {
#pragma unroll
      for (std::uint32_t& number : added) number += cuda::from_lane_xor(number, mask);
#pragma unroll
      for (std::uint32_t& number : most) {
        const std::uint32_t other = cuda::from_lane_xor(number, mask);
        number = number > other ? number : other;
      }
    }
    return {
        {added[0], added[1], added[2], added[3]}, added[4], most[0], added[5], most[1], added[6], added[7], added[8]};
  }
#pragma unroll
  for (std::uint32_t mask = 1; mask < warp_len; mask *= 2) own = add(own, from_lane_xor(own, mask));
  return own;
}

}  // namespace warpcipher::cuda
