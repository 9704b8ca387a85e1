// SPDX-License-Identifier: Apache-2.0
// The chunks of the messages of a batch as the kernels of GHASH find them, with the powers of the hash keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/inputs/hash_view.hpp"

namespace warpcipher::cuda::ghash {

inline constexpr std::uint32_t joining_of_warps = 32;
inline constexpr std::uint32_t joining_powers = joining_of_warps + 16;

// The chunks of a group of messages, which either kernel hashes: all pointers to device memory.
struct ChunkList {
  const HashView* views;
  const Block* masks;                // E(J0) of each message, or nullptr
  const std::uint64_t* first_chunk;  // of each message, and at the end `chunks`
  std::uint32_t messages;
  std::uint32_t powers_of_key;
  std::uint32_t chunk_powers;
  // Of key k from powers_of_key * k on: H^(2^j), or a PowerTable, which begins so too; from chunk_powers on
  // (H^c)^(2^j).
  const gf128::Element* powers;
  gf128::Element* sums;  // of each chunk, to be written
  std::uint64_t chunks;
  // nullptr, or what a block of threads joins the chunks of the one message by, P = H^c: lane l of a warp P^(31-l), and
  // from joining_of_warps on warp w P^(32 (15-w)).
  const gf128::Element* joining = nullptr;

  WARPCIPHER_HD const gf128::Element* powers_of(std::uint32_t key) const { return powers + std::size_t{powers_of_key} * key; }
};

}  // namespace warpcipher::cuda::ghash
