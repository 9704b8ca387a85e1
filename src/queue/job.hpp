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

}  // namespace warpcipher
