// SPDX-License-Identifier: Apache-2.0
// What the kernels of ChaCha20 and Poly1305 are given. Pointers are to device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/poly1305.hpp"
#include "engine/cuda/inputs/hash_view.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/block.hpp"

namespace warpcipher::cuda::chacha {

inline constexpr std::uint32_t block_len = 64;
inline constexpr std::uint32_t hash_blocks_of_block = block_len / 16;  // Poly1305's

// The key stream of a message: its key, the number of its first block, its nonce. Columns 1 to 3 of the first round do
// not depend on the counter, so they are computed once a message: words 1, 5, 9, 13; 2, 6, 10, 14; 3, 7, 11, 15.
struct alignas(16) KeyStream {
  std::uint32_t key[8];
  std::uint32_t counter;
  std::uint32_t nonce[3];
  std::uint32_t columns[12];
};

// Where the parts of a message's IV lie. MessageView::start has its first 16 bytes.
enum class NonceForm : std::uint8_t {
  counter_first,  // ChaCha20: counter and nonce
  nonce,          // ChaCha20-Poly1305: 12 bytes; the text begins with block 1
  extended,       // XChaCha20-Poly1305: 16 bytes, and 8 in HashView::mask
  // Of a part of a message the last word of HashView::mask has Message::first_block.
};

// Messages and their key streams.
struct Batch {
  const MessageView* views;
  const std::uint64_t* first_tile;  // prefix sums, one more than messages
  const KeyStream* streams;
  std::uint32_t messages;
  std::uint64_t tiles;
  std::uint64_t units;
  std::uint64_t most_units;
};

// How the text of a message is hashed on tensor cores (matrices.cuh has the algebra). A tile of the product is 32
// blocks of ChaCha20, one a lane; a segment is that many tiles, with a matrix each; warps of a block of threads take
// segments in turn.
inline constexpr std::uint32_t tiles_of_segment = 8;
inline constexpr std::uint32_t warps_of_chunk = 4;
inline constexpr std::uint32_t blocks_of_segment = 32 * tiles_of_segment;
inline constexpr std::uint32_t hash_blocks_of_segment = blocks_of_segment * hash_blocks_of_block;
// HashView::chunk_blocks is a multiple of this.
inline constexpr std::uint32_t chunk_multiple = warps_of_chunk * hash_blocks_of_segment;

// Powers of the r of all messages. Secret. The limbs of a power are `messages` words apart: lanes that make those of
// neighbours write neighbouring words.
struct Factors {
  static constexpr std::uint32_t blocks = 0;                        // r^i, i below 16
  static constexpr std::uint32_t rows = 16;                         // r^(16 i), i below 8
  static constexpr std::uint32_t tiles = 24;                        // r^(128 i)
  static constexpr std::uint32_t warps = tiles + tiles_of_segment;  // r^(1024 i): for the segments of warps
  static constexpr std::uint32_t turn = warps + warps_of_chunk;     // r^(1024 * warps_of_chunk)
  static constexpr std::uint32_t count = turn + 1;

  std::uint32_t* words;
  std::uint32_t messages;

  static constexpr std::size_t words_for(std::uint32_t messages) { return std::size_t{5} * count * messages; }
  WARPCIPHER_HD std::uint32_t* limb(std::uint32_t message, std::uint32_t power, std::uint32_t i) const {
    return words + std::size_t{5 * power + i} * messages + message;
  }
};

// The authentication of a batch.
struct Tags {
  const HashView* views;
  const std::uint64_t* first_chunk;  // of each message, and at the end `chunks`
  const Block* r;                    // of each message: the first half of its one-time key
  const Block* s;                    // the second
  std::uint64_t chunks;
  std::uint64_t chunk_blocks;  // of all views
  std::uint64_t most_blocks;   // of one message, AAD and text
  std::uint32_t* verdicts;     // nullptr: tags are written. Else 1 if the tag matches, or 0
  bool are_sums;               // Message::is_part: instead of tags
};

}  // namespace warpcipher::cuda::chacha
