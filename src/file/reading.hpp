// SPDX-License-Identifier: Apache-2.0
// One call of read_chunks() in progress: what its threads share. And the two ways it goes.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/thread_pool.hpp"
#include "engine/device_engine.hpp"
#include "engine/stream.hpp"
#include "file/file_piece.hpp"
#include "file/read_chunks.hpp"

namespace warpcipher {

class Reading {
 public:
  // room: bytes of the buffer that a piece is read into.
  Reading(const FileChunks& chunks, const ReadOptions& options, std::size_t room)
      : chunks_(chunks), options_(options), cutter_(chunks, room) {}

  const FileChunks& chunks() const { return chunks_; }

  // The next piece for this thread; false when there is none, or something failed. At exit a thread of the pool ends
  // early: exit waits for it, and the caller's thread, which it does not wait for, reads the rest.
  bool next(FilePiece& piece) {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    if (pool_.is_stopping() && std::this_thread::get_id() != caller_) return false;
    check(false);
    return cutter_.next(piece);
  }

  // Reads a piece into a buffer. Where that failed the piece is cut to the chunks before: one of them may fail too.
  // False where there are none.
  bool read(FilePiece& piece, std::uint8_t* buffer) {
    if (const auto failure = read_piece(chunks_, piece, buffer, [this] { check(true); })) fail(*failure);
    return !piece.empty();
  }

  // The first chunk is kept: pieces are given out in order, and those that were are finished.
  void fail(const ReadFailure& failure) {
    stopped_ = true;
    const std::lock_guard lock(mutex_);
    if (!failure_ || failure.chunk < failure_->chunk) failure_ = failure;
  }

  // Runs body() on `threads` threads, this one among them. Throws the first exception of any.
  template <class Body>
  std::optional<ReadFailure> run(std::size_t threads, Body&& body) {
    const auto guarded = [&] {
      try {
        body();
      } catch (...) {
        stopped_ = true;
        const std::lock_guard lock(mutex_);
        if (!exception_) exception_ = std::current_exception();
      }
    };
    {
      const ThreadPool::Beside helpers(pool_, threads - 1, guarded);
      guarded();
    }
    if (exception_) std::rethrow_exception(exception_);
    return failure_;
  }

  // Runs call(); an Error of it says which chunks it was about.
  template <class Call>
  void naming(const FilePiece& piece, Call&& call) const {
    try {
      call();
    } catch (const Error& error) {
      const std::uint64_t first = chunks_.first_number + piece.items.front().chunk;
      const std::uint64_t last = chunks_.first_number + piece.items.back().chunk;
      throw Error(error.status(), (first == last ? "chunk " + std::to_string(first)
                                                 : "chunks " + std::to_string(first) + " to " + std::to_string(last)) +
                                      ": " + error.what());
    }
  }

 private:
  void check(bool interrupted) const {
    if (options_.check && std::this_thread::get_id() == caller_) options_.check(interrupted);
  }

  const FileChunks& chunks_;
  const ReadOptions& options_;
  PieceCutter cutter_;
  ThreadPool& pool_ = ThreadPool::instance();
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::optional<ReadFailure> failure_;
  std::exception_ptr exception_;
};

// The two ways: as read_chunks(), for chunks that were checked and 1 to as many threads as the pool has; what failed is
// not wiped.
std::optional<ReadFailure> read_to_host(std::string_view engine, const FileChunks& chunks, const ReadOptions& options);
std::optional<ReadFailure> read_to_device(std::string_view name, DeviceEngine& engine, const FileChunks& chunks,
                                          Stream stream, const ReadOptions& options);

}  // namespace warpcipher
