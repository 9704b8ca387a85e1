// SPDX-License-Identifier: Apache-2.0
// The blocks of a message as GHASH reads them (inputs/message_view.hpp), and how a warp finds its chunk.
#pragma once

#include "cipher/gf128.hpp"
#include "engine/cuda/ghash/launches.hpp"
#include "engine/cuda/inputs/message_view.cuh"
#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/realign.cuh"

namespace warpcipher::cuda {

// Elements of GF(2^128) and the blocks that hold them (SP 800-38D, section 6.3).
__device__ __forceinline__ gf128::Element to_element(const Block& block) {
  return {std::uint64_t{byte_swap(block.words[0])} << 32 | byte_swap(block.words[1]),
          std::uint64_t{byte_swap(block.words[2])} << 32 | byte_swap(block.words[3])};
}

__device__ __forceinline__ Block to_block(const gf128::Element& element) {
  return {
      {byte_swap(static_cast<std::uint32_t>(element.high >> 32)), byte_swap(static_cast<std::uint32_t>(element.high)),
       byte_swap(static_cast<std::uint32_t>(element.low >> 32)), byte_swap(static_cast<std::uint32_t>(element.low))}};
}

}  // namespace warpcipher::cuda

namespace warpcipher::cuda::ghash {

__device__ __forceinline__ gf128::Element from_lane_xor(const gf128::Element& a, std::uint32_t mask) {
  return {cuda::from_lane_xor(a.high, mask), cuda::from_lane_xor(a.low, mask)};
}

// Block `i` of a text of `len` bytes, all of it, from any address: by two aligned loads if all that they read is of the
// text, else by bytes.
__device__ __forceinline__ Block load_whole(const std::uint8_t* text, std::uint64_t len, std::uint64_t i) {
  const std::uint8_t* const p = text + 16 * i;
  const std::uint32_t past = reinterpret_cast<std::uintptr_t>(p) % 16;
  if (past == 0) return load_aligned(p);
  if (i == 0 || 16 * i + 32 - past > len) return load_bytes(p, 16);
  return join_at(load_aligned(p - past), load_aligned(p - past + 16), past);
}

// Block `i` of a text of `len` bytes; zeros after its end.
__device__ __forceinline__ Block load_block(const std::uint8_t* text, std::uint64_t len, std::uint64_t i) {
  const std::uint64_t left = len - 16 * i;
  if (left >= 16) return load_whole(global(text), len, i);
  return load_bytes(global(text) + 16 * i, static_cast<std::uint32_t>(left));
}

// How blocks are elements of GHASH, and the block of the lengths, which is the last of a message (SP 800-38D, section
// 7.1, step 5).
struct Ghash {
  static __device__ __forceinline__ gf128::Element element(const Block& block) { return to_element(block); }
  static __device__ __forceinline__ gf128::Element lengths(const HashView& view) { return view.lengths(); }
};

// POLYVAL is GHASH of blocks whose bytes are reversed, under another key (gf128::load_polyval_key). RFC 8452, section
// 4, has the lengths.
struct Polyval {
  static __device__ __forceinline__ gf128::Element element(const Block& block) {
    return {std::uint64_t{block.words[3]} << 32 | block.words[2], std::uint64_t{block.words[1]} << 32 | block.words[0]};
  }
  static __device__ __forceinline__ Block block(const gf128::Element& a) {
    return {{static_cast<std::uint32_t>(a.low), static_cast<std::uint32_t>(a.low >> 32),
             static_cast<std::uint32_t>(a.high), static_cast<std::uint32_t>(a.high >> 32)}};
  }
  static __device__ __forceinline__ gf128::Element lengths(const HashView& view) {
    return {8 * view.text_len, 8 * view.aad_len};
  }
};

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

  // Blocks [begin, end) that are whole and contiguous in memory: block i is `past` bytes after the aligned word at
  // origin
  // + 16 i. They belong to AAD or ciphertext, whichever ends the chunk. origin is an address, not a pointer: block 0
  // may not belong to the text.
  struct Direct {
    std::uintptr_t origin;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t past;
  };

  // Aligned: none, unless they are at multiples of 16.
  template <bool Aligned = true>
  __device__ __forceinline__ Direct direct() const {
    const std::uint64_t aad_blocks = view.aad_blocks();
    const bool in_text = first + blocks > aad_blocks;
    const auto start = reinterpret_cast<std::uintptr_t>(global(in_text ? view.text : view.aad));
    const auto past = static_cast<std::uint32_t>(start % 16);
    if (Aligned && past != 0) return {0, 0, 0, 0};
    const std::uint64_t before = in_text ? aad_blocks : 0;
    const std::uint64_t whole = before + (in_text ? view.text_len : view.aad_len) / 16;
    const std::uint64_t begin = before > first ? before - first : 0;
    const std::uint64_t end = whole > first ? whole - first : 0;
    return {start - past + 16 * (first - before), begin, end < blocks ? end : blocks, past};
  }
};

// Chunk `number` of the group, of a known message.
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
