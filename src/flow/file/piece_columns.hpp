// SPDX-License-Identifier: Apache-2.0
// Chunks that follow each other in the columns of a file, in device memory, as a columnar batch to decrypt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/file/file_piece.hpp"
#include "flow/file/file_work.hpp"
#include "message/columns.hpp"

namespace warpcipher {

class PieceColumns {
 public:
  // The batch of these items, whose ciphertext lies in `memory`. ivs: of the items; empty: those of the chunks.
  // in_place: text goes to where its ciphertext is, and not to `out`. What is returned stays until the next call.
  const Columns& make(const FileChunks& chunks, std::span<const FilePiece::Item> items, std::span<std::uint8_t> memory,
                      std::span<const std::uint8_t> ivs, bool in_place) {
    const std::size_t first = items.front().chunk, count = items.size();
    const std::size_t tag_len = chunks.has_mac() ? 0 : chunks.tag_len;
    in_offsets_.clear();
    in_lengths_.clear();
    out_offsets_.clear();
    for (const FilePiece::Item& item : items) {
      in_offsets_.push_back(item.at);
      in_lengths_.push_back(chunks.lengths[item.chunk] + tag_len);
      out_offsets_.push_back(in_place ? item.at : item.place);
    }
    columns_ = {};
    columns_.direction = Direction::decrypt;
    columns_.memory = Memory::device;
    columns_.count = count;
    columns_.in = memory;
    columns_.in_offsets = in_offsets_;
    columns_.in_lengths = in_lengths_;
    columns_.out = in_place ? memory : chunks.out;
    columns_.out_offsets = out_offsets_;
    columns_.tag_len = tag_len;
    columns_.iv_len = chunks.iv_len;
    columns_.ivs = ivs.empty() ? chunks.ivs.subspan(first * chunks.iv_len, count * chunks.iv_len) : ivs;
    columns_.aad = chunks.aad;
    if (!chunks.aad_offsets.empty()) {
      columns_.aad_offsets = chunks.aad_offsets.subspan(first, count);
      columns_.aad_lengths = chunks.aad_lengths.subspan(first, count);
    }
    choose_keys(columns_, chunks, first, count, key_index_);
    return columns_;
  }

 private:
  Columns columns_;
  std::vector<std::uint64_t> in_offsets_, in_lengths_, out_offsets_;
  std::vector<std::uint32_t> key_index_;
};

}  // namespace warpcipher
