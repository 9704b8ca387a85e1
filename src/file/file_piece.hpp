// SPDX-License-Identifier: Apache-2.0
// A piece: consecutive chunks that are read and decrypted together, and where each lies in the piece's buffer. Chunks
// that follow each other in the file do so in the buffer, unless tags that are given must come between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "file/file_chunks.hpp"

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

  std::vector<Item> items;
  std::vector<Extent> extents;
  std::size_t len = 0;      // of the buffer that is used
  std::uint64_t begin = 0;  // in a buffer that has room for all pieces
  bool is_partial = false;  // of none of its chunks all is wanted: all go through scratch memory

  bool empty() const { return items.empty(); }

  // Leaves the chunks before one.
  void cut(std::size_t chunk);
};

// Why chunks could not be read: everything that is no fault of the caller or of an engine.
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
};

// Gives out the pieces of a file in order, to any thread.
class PieceCutter {
 public:
  // room: bytes of a buffer; at least most_chunk_len().
  PieceCutter(const FileChunks& chunks, std::size_t room) : chunks_(chunks), room_(room) {}

  // False when all have been given out. Throws Error{invalid_argument} at a chunk that does not fit where it belongs,
  // though chunks were checked: somebody changes them meanwhile.
  bool next(FilePiece& piece);

  // The bytes that the longest chunk takes of a buffer, and that all take together.
  static std::size_t most_chunk_len(const FileChunks& chunks);
  static std::uint64_t total_len(const FileChunks& chunks);

  // Of a buffer for pieces of piece_len bytes: the longest chunk fits, and no byte is beyond what all chunks take.
  static std::size_t room_for(const FileChunks& chunks, std::size_t piece_len);

  // Of a buffer for all pieces, each aligned.
  static std::uint64_t room_for_all(const FileChunks& chunks);

 private:
  const FileChunks& chunks_;
  const std::size_t room_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::uint64_t place_ = 0;  // of the next chunk, where no places are given
  std::uint64_t begin_ = 0;  // of the next piece
};

// Reads the extents of a piece into its buffer, and puts tags that are given where they belong. check: called when a
// signal interrupted the read; may throw. Nothing: all was read. After a failure the piece has the chunks before the
// one that failed, which are there.
std::optional<ReadFailure> read_piece(const FileChunks& chunks, FilePiece& piece, std::uint8_t* buffer,
                                      const std::function<void()>& check);

// The IV of an item, in the buffer or in its column.
const std::uint8_t* iv_of(const FileChunks& chunks, const FilePiece::Item& item, const std::uint8_t* buffer);

}  // namespace warpcipher
