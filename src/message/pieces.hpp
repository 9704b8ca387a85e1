// SPDX-License-Identifier: Apache-2.0
// Texts that lie in pieces of device memory, as tensors hold the blocks of a KV cache. Each ciphertext is in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpcipher {

// Where block 0 has a piece, and how far on the next block has it, in bytes.
struct PiecePlace {
  std::uint8_t* first;
  std::int64_t step;
};

struct Pieces {
  static constexpr std::size_t multiple = 64;  // whole blocks of every cipher

  std::span<const PiecePlace> places;     // of the pieces of a text, in order
  std::size_t len = 0;                    // of each piece, a multiple of that
  std::span<const std::uint64_t> blocks;  // the block of each message
  std::span<const std::uint8_t> heads{};  // encryption: bytes for each message, which go before its ciphertext

  std::size_t text_len() const { return places.size() * len; }
};

}  // namespace warpcipher
