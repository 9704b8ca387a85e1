// SPDX-License-Identifier: Apache-2.0
// The chunks of a range of plaintext in a file whose chunks all have one length: as columns, made by all cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "flow/file/file_chunks.hpp"

namespace warpcipher {

// Where the chunks lie; all in bytes. Chunk 0 may be shorter by `first_lacks`, the final one has the length that the
// file gives it.
//
//   header | chunk 0, overhead | chunk 1, overhead | ... | final chunk, overhead
struct RegularLayout {
  std::uint64_t header_len = 0;
  std::uint64_t chunk_len = 0;  // of plaintext
  std::uint64_t overhead = 0;   // what a chunk has more in the file
  std::uint64_t first_lacks = 0;
  std::uint64_t text_len = 0;  // of the whole file
  std::uint64_t count = 0;     // chunks of the whole file
};

// nonce(i) = base XOR (i << counter_shift) XOR (i is the final chunk ? 1 << final_shift : 0), as big-endian numbers.
struct RegularNonces {
  std::span<const std::uint8_t> base;  // at most 16 bytes
  unsigned counter_shift = 0;          // a multiple of 8
  int final_shift = -1;                // -1: the final chunk is not marked
};

class RegularChunks {
 public:
  // The chunks of plaintext [begin, begin + len); none for no bytes. Throws Error{invalid_argument} where the range or
  // the layout cannot be.
  RegularChunks(const RegularLayout& layout, const RegularNonces& nonces, std::uint64_t begin, std::uint64_t len);

  // Sets count, first_number, file_offsets, lengths, ivs, skips and takes; they stay for as long as this object.
  void fill(FileChunks& chunks) const;

 private:
  void make(const RegularLayout& layout, const RegularNonces& nonces, std::uint64_t i);

  // Memory that the cores write first, and so have the system's pages made: that is most of the time.
  template <class T>
  using Column = std::unique_ptr<T[]>;

  std::uint64_t first_ = 0;
  std::size_t count_ = 0;
  Column<std::uint64_t> file_offsets_, lengths_, skips_, takes_;  // the last two: null where all is wanted
  Column<std::uint8_t> ivs_;
  std::size_t iv_len_ = 0;
};

}  // namespace warpcipher
