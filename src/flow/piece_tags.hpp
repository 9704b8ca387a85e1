// SPDX-License-Identifier: Apache-2.0
// The tag of a message that goes to an engine in pieces: it comes from those of the pieces, because both hashes, GHASH
// and Poly1305, are polynomials over the blocks of the text.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mode/limits.hpp"

namespace warpcipher {

class PieceTags {
 public:
  static constexpr std::size_t most_tag_len = 32;  // of a piece

  PieceTags() = default;
  PieceTags(const PieceTags&) = delete;
  PieceTags& operator=(const PieceTags&) = delete;
  virtual ~PieceTags() = default;

  // Bytes of the tag of a piece.
  virtual std::size_t tag_len() const = 0;

  // Adds the next piece, whose own tag is `tag`: its text of `len` bytes (whole blocks, but in the last) begins at
  // `offset`. The first one's AAD counts.
  virtual void add(std::uint64_t offset, std::size_t len, const std::uint8_t* tag) = 0;

  // The whole message's tag, once every piece is there.
  virtual void tag(std::uint8_t (&tag)[full_tag_len]) const = 0;

 protected:
  // Blocks of both hashes; the last is filled up with zeros.
  static std::uint64_t hash_blocks_of(std::uint64_t len) { return (len + 15) / 16; }
};

}  // namespace warpcipher
