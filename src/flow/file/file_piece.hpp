// SPDX-License-Identifier: Apache-2.0
// A piece: consecutive chunks that are read and decrypted together, and where each lies in the piece's buffer. Chunks
// that follow each other in the file do so in the buffer, unless tags that are given must come between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "flow/file/sealing.hpp"
#include "flow/file/work.hpp"
#include "message/message.hpp"

namespace warpcipher {

struct FilePiece {
  struct Item {
    std::size_t chunk;
    std::size_t at;       // of the ciphertext in the buffer; the tag follows it
    std::uint64_t place;  // in out
  };

  // Bytes of the file that go to one place in the buffer.
  struct Extent {
    std::uint64_t file_offset;
    std::size_t at;
    std::size_t len;
  };

  // In a buffer where pieces lie side by side, as many as its length is for. It is filled again and again: a window is
  // what fills it once.
  struct Place {
    std::uint64_t window = 0;
    std::size_t number = 0;   // of the piece in the window
    std::uint64_t begin = 0;  // its first byte
    bool is_last = false;     // the window has no piece after it
  };

  std::vector<Item> items;
  std::vector<Extent> extents;
  std::size_t len = 0;  // of the buffer that is used
  Place place;
  bool is_partial = false;  // of none of its chunks all is wanted: all go through scratch memory, and it has no place

  bool empty() const { return items.empty(); }

  // Leaves the chunks before one.
  void cut(std::size_t chunk);
};

// Why chunks could not be read, if neither the caller nor an engine is at fault.
struct ReadFailure {
  enum class Kind : std::uint8_t {
    bad_tag,
    ended,  // the file has no byte at `position`, and never had or does no more
    error,  // of the system, as errno
  };
  Kind kind;
  std::size_t chunk;
  std::uint64_t position = 0;
  int error = 0;

  std::pair<std::size_t, std::uint64_t> place() const { return {chunk, position}; }
};

// The room of chunks in a buffer. Found by all cores: a pass over the half a million of 8 GiB takes one a millisecond.
class ChunkRooms {
 public:
  explicit ChunkRooms(const FileChunks& chunks);

  std::size_t longest() const { return longest_; }
  std::uint64_t total() const { return total_; }
  // Whether all is wanted of every chunk but the first and the last.
  bool are_whole() const { return are_whole_; }

  // Of a buffer for pieces of piece_len bytes: the longest chunk fits, and no byte is beyond what all chunks take.
  std::size_t for_piece(std::size_t piece_len) const;

  // Of a buffer for all pieces, each aligned.
  std::uint64_t for_all() const;

 private:
  const std::size_t count_;
  std::size_t longest_ = 0;
  std::uint64_t total_ = 0;
  bool are_whole_ = true;
};

// Gives out the pieces of a file in order, to any thread.
class PieceCutter {
 public:
  // room: bytes of a buffer for one piece; at least ChunkRooms::longest(). window_len: of one where pieces lie side by
  // side; at least `room`.
  PieceCutter(const FileChunks& chunks, std::size_t room, std::uint64_t window_len = UINT64_MAX)
      : chunks_(chunks), room_(room), window_len_(window_len) {}

  // False when all have been given out. Throws Error{invalid_argument} at a chunk that does not fit where it belongs,
  // though chunks were checked: somebody changes them meanwhile.
  bool next(FilePiece& piece);

 private:
  void put(FilePiece& piece);

  const FileChunks& chunks_;
  const std::size_t room_;
  const std::uint64_t window_len_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::uint64_t place_ = 0;  // of the next chunk, where no places are given
  FilePiece::Place free_;    // of the next piece
};

// Reads the extents of a piece into its buffer, and puts tags that are given where they belong. check: called when a
// signal interrupted the read; may throw. Nothing: all was read. After a failure the piece has the chunks before the
// one that failed, which are there.
std::optional<ReadFailure> read_piece(const FileChunks& chunks, FilePiece& piece, std::uint8_t* buffer,
                                      const std::function<void()>& check);

// The IV of an item, in the buffer or in its column.
const std::uint8_t* iv_of(const FileChunks& chunks, const FilePiece::Item& item, const std::uint8_t* buffer);

// Chunks as a columnar batch.
class PieceColumns {
 public:
  // The batch of these items, in order: of text at their places in `in` that goes to their places in `out`, in device
  // memory. ivs: of the items; empty: the chunks'. in_place: to where it comes from. The result stays valid
  // until the next call.
  Columns& make(const SealedChunks& chunks, Direction direction, std::span<const FilePiece::Item> items,
                std::span<const std::uint8_t> in, std::span<std::uint8_t> out, std::span<const std::uint8_t> ivs = {},
                bool in_place = false) {
    const std::size_t first = items.front().chunk, count = items.size();
    const std::size_t tag_len = chunks.has_mac() ? 0 : chunks.tag_len;
    in_offsets_.clear();
    in_lengths_.clear();
    out_offsets_.clear();
    for (const FilePiece::Item& item : items) {
      in_offsets_.push_back(item.at);
      in_lengths_.push_back(chunks.lengths[item.chunk] + (direction == Direction::decrypt ? tag_len : 0));
      out_offsets_.push_back(in_place ? item.at : item.place);
    }
    columns_ = {};
    columns_.direction = direction;
    columns_.memory = Memory::device;
    columns_.count = count;
    columns_.in = in;
    columns_.in_offsets = in_offsets_;
    columns_.in_lengths = in_lengths_;
    columns_.out = out;
    columns_.out_offsets = out_offsets_;
    columns_.tag_len = tag_len;
    columns_.iv_len = chunks.iv_len;
    columns_.ivs = ivs.empty() ? of_items(chunks.ivs, chunks.iv_len, items, ivs_) : ivs;
    columns_.aad = chunks.aad;
    if (!chunks.aad_offsets.empty()) {
      columns_.aad_offsets = of_items(chunks.aad_offsets, 1, items, aad_offsets_);
      columns_.aad_lengths = of_items(chunks.aad_lengths, 1, items, aad_lengths_);
    }
    choose_keys(columns_, chunks, first, count, key_index_);
    return columns_;
  }

 private:
  // `each` entries of a column for each item: a part of it where they are all chunks from the first to the last.
  template <class T>
  static std::span<const T> of_items(std::span<const T> column, std::size_t each,
                                     std::span<const FilePiece::Item> items, std::vector<T>& room) {
    const std::size_t first = items.front().chunk;
    if (items.back().chunk - first + 1 == items.size()) return column.subspan(first * each, items.size() * each);
    room.clear();
    for (const FilePiece::Item& item : items) {
      const std::span<const T> these = column.subspan(item.chunk * each, each);
      room.insert(room.end(), these.begin(), these.end());
    }
    return room;
  }

  Columns columns_;
  std::vector<std::uint64_t> in_offsets_, in_lengths_, out_offsets_, aad_offsets_, aad_lengths_;
  std::vector<std::uint8_t> ivs_;
  std::vector<std::uint32_t> key_index_;
};

}  // namespace warpcipher
