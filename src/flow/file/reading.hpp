// SPDX-License-Identifier: Apache-2.0
// One call of read_chunks() in progress: what its threads share. And the two ways it goes.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/cpu/hmac.hpp"
#include "engine/device_engine.hpp"
#include "engine/stream.hpp"
#include "flow/file/file_piece.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/work.hpp"

namespace warpcipher {

class Reading : public FailingWork<ReadFailure> {
 public:
  // room: bytes of the buffer that a piece is read into. window_len: as of PieceCutter.
  Reading(const FileChunks& chunks, const ReadOptions& options, std::size_t room, std::uint64_t window_len = UINT64_MAX)
      : FailingWork(options.check), chunks_(chunks), cutter_(chunks, room, window_len) {}

  const FileChunks& chunks() const { return chunks_; }

  // The next piece for this thread; false when there is none, or something failed.
  bool next(FilePiece& piece) { return goes_on() && cutter_.next(piece); }

  // For a thread that waits for others with a piece: false when something has failed before it, or was thrown. Where it
  // failed after it, a chunk of the piece may be the first. Throws at exit, as a piece that is dropped without a
  // failure would leave a hole.
  bool needs(const FilePiece& piece) {
    check(false);
    if (is_left_by_exit()) throw Error(Status::engine_failure, "the process ends while a file is read");
    if (has_thrown()) return false;
    const std::optional<ReadFailure> found = failure();
    return !found || found->chunk >= piece.items.front().chunk;
  }

  // Reads a piece into a buffer. Where that failed the piece is cut to the chunks before: one of them may fail too.
  // False where there are none.
  bool read(FilePiece& piece, std::uint8_t* buffer) {
    if (const auto failure = read_piece(chunks_, piece, buffer, [this] { check(true); })) fail(*failure);
    return !piece.empty();
  }

  // Whether all of these were opened; else the first that was not has failed.
  bool are_right(std::span<const Result> results, std::span<const FilePiece::Item> items) {
    const auto bad = std::ranges::find_if(results, [](const Result& r) { return r.status != Status::ok; });
    if (bad == results.end()) return true;
    fail({ReadFailure::Kind::bad_tag, items[static_cast<std::size_t>(bad - results.begin())].chunk});
    return false;
  }

  // Runs call(); an Error of it says which chunks it was about.
  template <class Call>
  void naming(const FilePiece& piece, Call&& call) const {
    if (chunks_.is_plain()) return call();
    naming_chunks(chunks_.first_number + piece.items.front().chunk, chunks_.first_number + piece.items.back().chunk,
                  std::forward<Call>(call));
  }

 private:
  const FileChunks& chunks_;
  PieceCutter cutter_;
};

// The two ways: as read_chunks(), for chunks that were checked and 1 to as many threads as the pool has; what failed is
// not wiped.
std::optional<ReadFailure> read_to_host(std::string_view engine, const FileChunks& chunks, const ChunkRooms& rooms,
                                        const ReadOptions& options);
std::optional<ReadFailure> read_to_device(std::string_view name, DeviceEngine& engine, const FileChunks& chunks,
                                          const ChunkRooms& rooms, Stream stream, const ReadOptions& options);

// Checks before a chunk is decrypted: its head, and the HMAC of one whose cipher authenticates nothing, as
// Tink's AES-CTR-HMAC. Of one thread; another takes a copy.
class PieceCheck {
 public:
  explicit PieceCheck(const FileChunks& chunks) : chunks_(chunks) {
    if (chunks.has_mac()) hmac_.emplace(chunks.mac.hash, chunks.mac.key);
  }
  PieceCheck(const PieceCheck&) = default;
  PieceCheck& operator=(const PieceCheck&) = delete;

  // The first chunk of a piece that is not authentic by what the buffer holds of it.
  std::optional<ReadFailure> find_bad(const FilePiece& piece, const std::uint8_t* buffer) {
    if (chunks_.heads.empty() && !hmac_) return std::nullopt;
    for (const FilePiece::Item& item : piece.items) {
      if (!is_right(item, buffer)) return ReadFailure{ReadFailure::Kind::bad_tag, item.chunk};
    }
    return std::nullopt;
  }

  // The same of one chunk.
  bool is_right(const FilePiece::Item& item, const std::uint8_t* buffer) {
    const std::uint8_t* const text = buffer + item.at;
    if (!chunks_.heads.empty()) {
      const std::span<const std::uint8_t> head = chunks_.head(item.chunk);
      if (!std::ranges::equal(head, std::span(text - head.size(), head.size()))) return false;
    }
    if (!hmac_) return true;
    const std::size_t len = chunks_.lengths[item.chunk];
    return hmac_->matches({{{iv_of(chunks_, item, buffer), chunks_.iv_len}, {text, len}}},
                          {text + len, chunks_.tag_len});
  }

  const FileChunks& chunks_;
  std::optional<Hmac> hmac_;
};

}  // namespace warpcipher
