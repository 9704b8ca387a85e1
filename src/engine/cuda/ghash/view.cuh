// SPDX-License-Identifier: Apache-2.0
// A message as GHASH sees it: AAD and ciphertext, each padded with zeros to blocks, are one row of blocks X_0 ...
// X_n-1, cut from the back into chunks of c blocks (only the first is short).
#pragma once

#include "cipher/gf128.hpp"
#include "engine/cuda/block.cuh"
#include "engine/cuda/message_view.cuh"

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

__device__ __forceinline__ gf128::Element to_element(const Block& block) {
  return {std::uint64_t{byte_swap(block.words[0])} << 32 | byte_swap(block.words[1]),
          std::uint64_t{byte_swap(block.words[2])} << 32 | byte_swap(block.words[3])};
}

__device__ __forceinline__ Block to_block(const gf128::Element& element) {
  return {
      {byte_swap(static_cast<std::uint32_t>(element.high >> 32)), byte_swap(static_cast<std::uint32_t>(element.high)),
       byte_swap(static_cast<std::uint32_t>(element.low >> 32)), byte_swap(static_cast<std::uint32_t>(element.low))}};
}

__device__ __forceinline__ gf128::Element from_lane_xor(const gf128::Element& a, std::uint32_t mask) {
  return {cuda::from_lane_xor(a.high, mask), cuda::from_lane_xor(a.low, mask)};
}

// Block `i` of text of `len` bytes, zeros behind its end.
__device__ __forceinline__ Block load_block(const std::uint8_t* text, std::uint64_t len, std::uint64_t i) {
  const std::uint8_t* p = global(text) + 16 * i;
  const std::uint64_t left = len - 16 * i;
  if (left >= 16 && (reinterpret_cast<std::uintptr_t>(p) & 15) == 0) return load_aligned(p);
  return load_bytes(p, left < 16 ? static_cast<std::uint32_t>(left) : 16);
}

// Blocks [first, first + blocks) of a message.
struct Chunk {
  const HashView& view;
  std::uint64_t first;
  std::uint64_t blocks;

  // Its block number i.
  __device__ __forceinline__ Block load(std::uint64_t i) const {
    i += first;
    const std::uint64_t aad_blocks = view.aad_blocks();
    return i < aad_blocks ? load_block(view.aad, view.aad_len, i)
                          : load_block(view.text, view.text_len, i - aad_blocks);
  }

  // Blocks [begin, end) that lie whole, aligned and side by side in memory: block i at origin + 16 i. Of AAD and
  // ciphertext, whichever ends the chunk. An address, not a pointer: block 0 may be none of the text's.
  struct Direct {
    std::uintptr_t origin;
    std::uint64_t begin;
    std::uint64_t end;
  };

  __device__ __forceinline__ Direct direct() const {
    const std::uint64_t aad_blocks = view.aad_blocks();
    const bool in_text = first + blocks > aad_blocks;
    const auto start = reinterpret_cast<std::uintptr_t>(global(in_text ? view.text : view.aad));
    if (start % 16 != 0) return {0, 0, 0};
    const std::uint64_t before = in_text ? aad_blocks : 0;
    const std::uint64_t whole = before + (in_text ? view.text_len : view.aad_len) / 16;
    const std::uint64_t begin = before > first ? before - first : 0;
    const std::uint64_t end = whole > first ? whole - first : 0;
    return {start + 16 * (first - before), begin, end < blocks ? end : blocks};
  }
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

// Chunk `number` of the group, of a message that is known.
__device__ __forceinline__ Chunk chunk_at(const ChunkList& list, std::uint32_t message, std::uint64_t number) {
  const HashView& view = list.views[message];
  const std::uint64_t after = (list.first_chunk[message + 1] - 1 - number) * view.chunk_blocks;
  const std::uint64_t end = view.blocks() - after;
  const std::uint64_t blocks = end < view.chunk_blocks ? end : view.chunk_blocks;
  return {view, end - blocks, blocks};
}

__device__ __forceinline__ Chunk find_chunk(const ChunkList& list, std::uint64_t number) {
  return chunk_at(list, find_message(list.first_chunk, list.messages, list.chunks, number), number);
}

}  // namespace warpcipher::cuda::ghash
