// SPDX-License-Identifier: Apache-2.0
// A job: the message of one call of Queue::submit, and its result. A job is a future: any thread may wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/fork.hpp"
#include "message/message.hpp"

namespace warpcipher {

// A doubly linked list whose links are members of the items, so that adding and removing an item allocates nothing.
template <class T>
struct ListLinks {
  T* previous = nullptr;
  T* next = nullptr;
};

// `Member`: the links of a T for this list. The list does not own its items.
template <class T, ListLinks<T> T::*Member>
class IntrusiveList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  T* first() const noexcept { return first_; }

  void push_back(T& item) noexcept {
    item.*Member = {last_, nullptr};
    (last_ != nullptr ? (last_->*Member).next : first_) = &item;
    last_ = &item;
    ++size_;
  }

  void remove(T& item) noexcept {
    const ListLinks<T> links = item.*Member;
    (links.previous != nullptr ? (links.previous->*Member).next : first_) = links.next;
    (links.next != nullptr ? (links.next->*Member).previous : last_) = links.previous;
    --size_;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

struct Submitter;

class Job {
 public:
  enum class State : std::uint8_t {
    waiting,    // not launched, perhaps not yet submitted
    running,    // in a payload on its way
    done,       // result() is valid
    cancelled,  // taken back before it was launched; nothing was written
  };

  // A message in host memory. Its key and what it points to must live until the job is done or cancelled.
  explicit Job(const Message& message);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  State state() const;

  // Wait until the job is done or cancelled; wait_for returns false when it was not within `time`. Throw
  // Error{engine_failure} in the child of a fork, where the job is the parent's.
  void wait() const;
  bool wait_for(std::chrono::microseconds time) const;

  const Message& message() const noexcept { return message_; }

  // Once done. status is ok, invalid_tag or invalid_padding as after run(), or why the payload could not be run, which
  // failure() then has the words.
  const Result& result() const noexcept { return result_; }
  const std::string& failure() const noexcept { return failure_; }

  // Bytes of text that go in; and bytes of memory that the job keeps busy: text in and out, AAD, tag, descriptors.
  std::size_t text_len() const noexcept { return text_len_; }
  std::size_t memory_len() const noexcept { return memory_len_; }

 private:
  friend class FairOrder;
  friend class MpscStack;
  friend class Payload;
  friend class Queue;
  friend struct Submitter;

  using Clock = std::chrono::steady_clock;

  bool ended() const {
    const State state = state_.load(std::memory_order_seq_cst);
    return state == State::done || state == State::cancelled;
  }
  void check_process() const;
  void set_state(State state);

  // One core writes these members and another reads them, so they are adjacent. The submitter writes them before it
  // pushes the job onto the stack; afterwards the queue's mutex guards them. They are not aligned to cache lines:
  // aligned memory costs malloc more time than all other steps of a submission.
  Job* next_in_stack_ = nullptr;
  std::shared_ptr<Job> self_;  // keeps the job alive while it waits
  std::size_t text_len_ = 0;
  std::size_t memory_len_ = 0;
  std::uint64_t submitter_ = 0;
  std::uint64_t number_ = 0;
  Clock::time_point submitted_{};
  std::atomic<bool> claimed_{false};  // by a call of submit
  bool queued_ = false;               // is in the FairOrder
  Submitter* from_ = nullptr;         // the submitter that its memory is counted for
  ListLinks<Job> by_age_, by_submitter_;

  std::atomic<State> state_{State::waiting};
  mutable std::atomic<bool> awaited_{false};  // someone waits, or did

  const Message message_;
  // Written by the thread that runs the payload, before the state becomes `done`, as is failure_.
  Result result_{};
  std::string failure_;

  const unsigned process_ = fork_count();
  mutable std::mutex mutex_;  // with changed_: of those who wait
  mutable std::condition_variable changed_;
};

// A payload of a queue: jobs that run as one batch. The failure of one job does not reach the others.

// Runs messages as run() in src/dispatch/run.hpp does. The runner knows the engine.
using Runner = std::function<void(std::span<const Message>, std::span<Result>)>;

class Payload {
 public:
  // Runs the jobs and fills in their results. Never throws: an exception becomes the result of
  //   - the whole payload, when the engine failed. It is not run again: text in place may be half done, an error of
  //     CUDA stays for the life of the process, and only the caller knows whether there is another way. Outputs that
  //     are not in place are wiped.
  //   - the jobs at fault, when messages of different jobs cannot run together (nothing has been written by then). Of
  //     two that encrypt with the same key and nonce the one that was submitted later is refused; two of which one
  //     writes where the other reads or writes run one after the other.
  // The state of the jobs is left to the caller.
  static void run(const Runner& runner, std::span<const std::shared_ptr<Job>> jobs) noexcept;

 private:
  static void separate(const Runner& runner, std::span<const std::shared_ptr<Job>> jobs);
  static void fail(Job& job, Status status, const std::string& why, bool written) noexcept;
};

// The waiting jobs of a queue and the order in which payloads take them: from each submitter in turn, and from one
// submitter the oldest first (deficit round robin, Shreedhar and Varghese 1995). Not thread-safe: the queue's mutex
// guards it.
//
//   submitter A   [ 16K | 16K | 16K | 16K | 16K | 16K | ... ]
//   submitter B   [ 1K ]                                           payload: A A A A  B  C C C C  A A ...
//   submitter C   [ 16K | 16K | 16K | 16K | 16K ]                           one turn: turn_len bytes
//
// A turn is counted in bytes, so neither many messages nor long ones win more than a fair share. A submitter with one
// short message waits for at most one turn of each other submitter.

struct Submitter {
  const std::uint64_t id;
  IntrusiveList<Job, &Job::by_submitter_> jobs;  // waiting
  std::size_t held = 0;                          // Job::memory_len() of its waiting and running jobs
  std::size_t credit = 0;                        // bytes that it may still take in this turn
  bool in_turn = false;                          // its turn has begun, and the credit has been added
  ListLinks<Submitter> turns{};
};

class FairOrder {
 public:
  static constexpr std::size_t turn_len = std::size_t{64} << 10;

  // Adds a job after the others of its submitter, and counts its memory for that submitter until release(). Job::self_
  // keeps the job alive.
  void push(Job& job);

  // Removes a job that waits here, and returns its Job::self_.
  std::shared_ptr<Job> remove(Job& job);

  // The next payload: at most max_jobs jobs, of at most max_len bytes of text together, but at least one.
  std::vector<std::shared_ptr<Job>> take(std::size_t max_len, std::size_t max_jobs);

  // Stops counting the memory of a job that was pushed.
  void release(Job& job);
  std::size_t held_by(std::uint64_t submitter) const;

  bool empty() const noexcept { return by_age_.empty(); }
  std::size_t text_len() const noexcept { return text_len_; }
  std::size_t jobs() const noexcept { return by_age_.size(); }
  Job& oldest() const noexcept { return *by_age_.first(); }

 private:
  Submitter& submitter_of(Job& job);
  std::shared_ptr<Job> take_out(Job& job);
  void end_turns(Submitter& submitter);
  void next_turn();

  std::unordered_map<std::uint64_t, Submitter> submitters_;
  Submitter* last_pushed_ = nullptr;  // a cache: most jobs come from the same submitter as the one before
  IntrusiveList<Submitter, &Submitter::turns> turns_;  // submitters with jobs here; it is the first one's turn
  IntrusiveList<Job, &Job::by_age_> by_age_;
  std::size_t text_len_ = 0;
};

}  // namespace warpcipher
