// SPDX-License-Identifier: Apache-2.0
// What reading and writing of a file's chunks share: threads that take one piece after another until none is left or
// one of them failed, and the keys of a piece.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "flow/file/sealing.hpp"
#include "message/columns.hpp"

namespace warpcipher {

// Host memory that the threads of one call take at most for what they read and write; one thread takes what it needs.
inline constexpr std::size_t most_buffers_len = std::size_t{512} << 20;

// As many of these threads as may have buffers of that length each: 15 where each has one of 32 MiB. An engine has work
// for the other cores in a chunk that long; HMAC has not.
inline std::size_t threads_with_buffers(std::size_t threads, std::size_t len) {
  return std::clamp<std::size_t>(most_buffers_len / len, 1, threads);
}

class FileWork {
 public:
  // check: called on the caller's thread; see ReadOptions.
  explicit FileWork(const std::function<void(bool interrupted)>& check) : check_(check) {}

  // False: this thread takes no further piece, as something failed. At exit a thread of the pool ends early: exit waits
  // for it, and the caller's thread, which it does not wait for, does the rest.
  bool goes_on() const {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    if (is_left_by_exit()) return false;
    check(false);
    return true;
  }

  // Whether exit waits for this thread, and the caller's may never go on: then nothing may be waited for.
  bool is_left_by_exit() const { return pool_.is_stopping() && !is_callers_thread(); }

  void stop() { stopped_ = true; }

  // Whether a thread has, and run() will.
  bool has_thrown() const { return has_thrown_.load(std::memory_order_relaxed); }

  // interrupted: a signal interrupted a system call.
  void check(bool interrupted) const {
    if (check_ && is_callers_thread()) check_(interrupted);
  }

  // Runs body() on `threads` threads, this one among them. Throws the first exception of any.
  template <class Body>
  void run(std::size_t threads, Body&& body) {
    const auto guarded = [&] {
      try {
        body();
      } catch (...) {
        stop();
        has_thrown_ = true;
        const std::lock_guard lock(mutex_);
        if (!exception_) exception_ = std::current_exception();
      }
    };
    {
      const ThreadPool::Helpers helpers(pool_, threads - 1, guarded);
      guarded();
    }
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  bool is_callers_thread() const { return std::this_thread::get_id() == caller_; }

  const std::function<void(bool interrupted)>& check_;
  ThreadPool& pool_ = ThreadPool::instance();
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> stopped_{false}, has_thrown_{false};
  std::mutex mutex_;
  std::exception_ptr exception_;
};

// Runs call(); an Error of it says which chunks it was about.
template <class Call>
void naming_chunks(std::uint64_t first, std::uint64_t last, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string chunks = first == last ? "chunk " + std::to_string(first)
                                             : "chunks " + std::to_string(first) + " to " + std::to_string(last);
    throw Error(error.status(), chunks + ": " + error.what());
  }
}

// Sets the keys of `count` chunks from `first` on. Of many keys only those that they need, as they lie: each piece
// sends them to the device. numbers: memory for key_index, which stays as long as the columns.
inline void choose_keys(Columns& columns, const SealedChunks& chunks, std::size_t first, std::size_t count,
                        std::vector<std::uint32_t>& numbers) {
  columns.keys = chunks.keys.first(1);
  if (chunks.key_index.empty()) return;
  const std::span<const std::uint32_t> these = chunks.key_index.subspan(first, count);
  const auto [least, most] = std::minmax_element(these.begin(), these.end());
  columns.keys = chunks.keys.subspan(*least, *most - *least + 1);
  if (*least == *most) return;
  numbers.assign(these.begin(), these.end());
  for (std::uint32_t& number : numbers) number -= *least;
  columns.key_index = numbers;
}

}  // namespace warpcipher
