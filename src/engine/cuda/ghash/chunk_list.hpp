// SPDX-License-Identifier: Apache-2.0
// The chunks of a batch's messages, as the kernels of GHASH find them, and the powers of the hash keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/inputs/hash_view.hpp"

namespace warpcipher::cuda::ghash {

inline constexpr std::uint32_t joining_of_warps = 32;
inline constexpr std::uint32_t joining_powers = joining_of_warps + 16;

// The chunks of a group of messages. All pointers are to device memory.
struct ChunkList {
  const HashView* views;
  const Block* masks;                // E(J0) of each message, or nullptr
  const std::uint64_t* first_chunk;  // of each message, and at the end `chunks`
  std::uint32_t messages;
  std::uint32_t powers_of_key;
  std::uint32_t chunk_powers;
  // Powers of key k begin at powers_of_key * k: H^(2^j), or a PowerTable, which begins with them; from chunk_powers on
  // (H^c)^(2^j).
  const gf128::Element* powers;
  gf128::Element* sums;  // of each chunk, to be written
  std::uint64_t chunks;
  // The factors by which a block of threads joins the chunks of a single message, or nullptr. With P = H^c: P^(31-l)
  // for lane l of a warp; from joining_of_warps on, P^(32 (15-w)) for warp w.
  const gf128::Element* joining = nullptr;
  // Not nullptr: the hash is POLYVAL (RFC 8452, section 3), and that of each message goes here, without its mask. Tags
  // are neither written nor checked.
  Block* polyvals = nullptr;
  bool is_aligned = false;          // all texts lie at multiples of 16
  std::uint64_t least_chunked = 0;  // messages of fewer blocks are hashed apart, without chunks
  const std::uint32_t* order = nullptr;  // tensor_rows: the messages to hash; nullptr: all

  WARPCIPHER_HD bool is_polyval() const { return polyvals != nullptr; }

  WARPCIPHER_HD const gf128::Element* powers_of(std::uint32_t key) const { return powers + std::size_t{powers_of_key} * key; }
};

}  // namespace warpcipher::cuda::ghash
