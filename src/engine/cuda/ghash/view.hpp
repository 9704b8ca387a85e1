// SPDX-License-Identifier: Apache-2.0
// A message as GHASH sees it: AAD and ciphertext, each padded with zeros to blocks, are one row of blocks X_0 ...
// X_n-1, cut from the back into chunks of c blocks (only the first is short).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/block.hpp"

namespace warpcipher::cuda::ghash {

struct HashView {
  const std::uint8_t* aad;   // device memory
  const std::uint8_t* text;  // ciphertext
  std::uint8_t* tag;
  std::uint64_t aad_len;
  std::uint64_t text_len;
  std::uint64_t chunk_blocks;
  std::uint32_t tag_len;
  std::uint32_t key;  // its number in the group's table of powers
  Block mask;  // E(J0), unless ChunkList::masks has it

  WARPCIPHER_HD std::uint64_t aad_blocks() const { return (aad_len + 15) / 16; }
  WARPCIPHER_HD std::uint64_t blocks() const { return aad_blocks() + (text_len + 15) / 16; }
  WARPCIPHER_HD gf128::Element lengths() const { return {8 * aad_len, 8 * text_len}; }  // in bits: the last block
  WARPCIPHER_HD std::uint64_t chunks() const { return (blocks() + chunk_blocks - 1) / chunk_blocks; }
};

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
  std::uint64_t blocks;  // of all chunks
  // nullptr, or what a block of threads joins the chunks of the one message by, P = H^c: lane l of a warp P^(31-l), and
  // from joining_of_warps on warp w P^(32 (15-w)).
  const gf128::Element* joining = nullptr;

  WARPCIPHER_HD const gf128::Element* powers_of(std::uint32_t key) const { return powers + std::size_t{powers_of_key} * key; }
};

}  // namespace warpcipher::cuda::ghash
