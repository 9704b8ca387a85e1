// SPDX-License-Identifier: Apache-2.0
// The common part of threads that move files. To a device each has two slots of page-locked memory, one that is filled
// while the other is on its way.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "flow/file/sealing.hpp"
#include "flow/slot_memory.hpp"
#include "message/message.hpp"

namespace warpcipher {

inline constexpr std::size_t slots_of_thread = 2;

// H200, a file of 8 GiB in memory, AES-256-GCM in chunks of 16 KiB, GB/s by pieces of 1, 2 and 4 MiB: 16 threads 39.3,
// 47.0, 50.2; 8 threads 32.0, 42.9, 44.4; 4 threads 19.2, 22.3, 22.0. Longer ones leave the caches: of 8, 16 and 32
// MiB, 31.5, 31, 11; 29, 23, 13; 15.8, 13, 11. Shorter data are shared among all threads.
// So slots are shorter where they are more than 32, and take 128 MiB together.
inline constexpr std::size_t most_slot_len = std::size_t{4} << 20;
inline constexpr std::size_t least_slot_len = std::size_t{1} << 20;

// The threads of a call that asks for `asked` of them; 0: as many as the process has cores. More than that are not
// used.
inline std::size_t threads_for(std::size_t asked) {
  const std::size_t most = ThreadPool::instance().threads();
  return asked == 0 ? most : std::min(asked, most);
}

// Bytes of a slot where a call moves `total` on `threads` threads. H200, 32 MiB of that file on 16 threads, ms by slots
// of 0.5, 1, 2 and 4 MiB: 2.4, 1.8, 2.4, 2.0.
inline std::size_t slot_len_for(std::uint64_t total, std::size_t threads) {
  const std::size_t slots = slots_of_thread * threads;
  const std::uint64_t most = std::clamp(std::bit_floor(PinnedBudget::least / slots), least_slot_len, most_slot_len);
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(std::bit_floor(total / slots), least_slot_len, most));
}

// The threads that have work and slots of that length.
inline std::size_t threads_with_slots(std::size_t threads, std::uint64_t total, std::size_t slot_len) {
  const auto pieces = static_cast<std::size_t>(total / slot_len + (total % slot_len != 0 ? 1 : 0));
  return std::clamp<std::size_t>(std::min(pieces, PinnedBudget::of_call() / (slots_of_thread * slot_len)), 1, threads);
}

// The base of reading and writing a file's chunks: threads that take one piece after another until none is left or
// one of them failed, and the keys of a piece.

// Host memory that the threads of one call take at most for what they read and write; one thread takes what it needs.
inline constexpr std::size_t most_buffers_len = std::size_t{512} << 20;

// As many of these threads as may have buffers of that length each: 15 where each has one of 32 MiB. An engine has work
// for the other cores in a chunk that long; HMAC has not.
inline std::size_t threads_with_buffers(std::size_t threads, std::size_t len) {
  return std::clamp<std::size_t>(most_buffers_len / len, 1, threads);
}

// A thread's work on its slots: the piece of one is on its way while the next is filled. Slot: settle() returns when
// its piece, if it has one, is where it belongs, or false where the thread is to end. load(settle_others) takes the
// next piece and sends it, or returns false where there is none.
template <class Slot>
void take_turns(std::array<Slot, slots_of_thread>& slots) {
  for (std::size_t turn = 0;; ++turn) {
    const auto settle_others = [&] {  // in the order in which they were sent
      for (std::size_t k = 1; k < slots_of_thread; ++k) {
        if (!slots[(turn + k) % slots_of_thread].settle()) return;
      }
    };
    Slot& slot = slots[turn % slots_of_thread];
    if (!slot.settle()) return;
    if (!slot.load(settle_others)) return settle_others();
  }
}

// Moves all of a buffer by a system call that may move less: call(done, left). interrupted() is called where a signal
// came, and may throw. Returns what was moved; if that is less, errno says why, 0 that nothing more is there.
template <class Call, class Interrupted>
std::size_t move_all(std::size_t len, Call&& call, Interrupted&& interrupted) {
  std::size_t done = 0;
  while (done < len) {
    errno = 0;
    const auto moved = call(done, len - done);
    if (moved < 0 && errno == EINTR) {
      interrupted();
      continue;
    }
    if (moved <= 0) break;
    done += static_cast<std::size_t>(moved);
  }
  return done;
}

class FileWork {
 public:
  // check: called on the caller's thread; see ReadOptions.
  explicit FileWork(const std::function<void(bool interrupted)>& check) : check_(check) {}

  // False: this thread takes no further piece, as something failed. A thread of the pool also ends early where another
  // call has fewer, and at exit: exit waits for it, and the caller's thread, which it does not wait for, does the rest.
  bool goes_on() const {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    if (!is_callers_thread() && (pool_.is_stopping() || pool_.is_wanted_elsewhere())) return false;
    check(false);
    return true;
  }

  // Whether exit waits for this thread, and the caller's may never continue: then nothing may be waited for.
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

  // The same by slots of each thread, on this one's current device: Slot(engine, more...).
  template <class Slot, class... More>
  void run_slots(std::size_t threads, DeviceEngine& engine, More&... more) {
    const int device = engine.current_device();
    run(threads, [&] {
      const SelectedDevice scope(engine, device);
      std::array<Slot, slots_of_thread> slots{Slot(engine, more...), Slot(engine, more...)};
      take_turns(slots);
    });
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

// The same with what fails: the first by its place() is kept. Where pieces are given out in order, those before it are
// done or fail too.
template <class Failure>
class FailingWork : public FileWork {
 public:
  using FileWork::FileWork;

  void fail(const Failure& failure) {
    stop();
    const std::lock_guard lock(mutex_);
    if (!failure_ || failure.place() < failure_->place()) failure_ = failure;
  }

  std::optional<Failure> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Failure> failure_;
};

// Runs call(); an Error of it says which chunks it was about.
template <class Call>
void naming_chunks(std::uint64_t first, std::uint64_t last, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string chunks = first == last ? "chunk " + std::to_string(first)
                                             : "chunks " + std::to_string(first) + " to " + std::to_string(last);
    throw Error(error.status(), joined(chunks, ": ", error.what()));
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
