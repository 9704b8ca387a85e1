// SPDX-License-Identifier: Apache-2.0
// A job: the messages of one call of Queue::submit, one or a small batch, and their results. A job is a future: any
// thread may wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "batch/message.hpp"
#include "core/fork.hpp"
#include "queue/intrusive_list.hpp"

namespace warpcipher {

struct Submitter;

class Job {
 public:
  enum class State : std::uint8_t {
    waiting,    // not launched, perhaps not yet submitted
    running,    // in a payload on its way
    done,       // results() are valid
    cancelled,  // taken back before it was launched; nothing was written
  };

  // Messages in host memory. Their keys and what they point to must live until the job is done or cancelled.
  explicit Job(std::vector<Message> messages);
  explicit Job(const Message& message);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  State state() const;

  // Wait until the job is done or cancelled; wait_for returns false when it was not within `time`. Throw
  // Error{engine_failure} in the child of a fork, where the job is the parent's.
  void wait() const;
  bool wait_for(std::chrono::microseconds time) const;

  std::span<const Message> messages() const noexcept { return messages_; }

  // Once done, one result a message. status is ok, invalid_tag or invalid_padding as after run(); or, the same for all
  // messages of the job, why the payload could not be run, which failure() then tells in words.
  std::span<const Result> results() const noexcept { return results_; }
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

  void check();

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

  // Nearly every job is one message, which is stored here: allocating in one thread and freeing in another is slow.
  const Message message_{};
  Result result_{};
  const std::vector<Message> more_messages_;
  std::vector<Result> more_results_;
  const std::span<const Message> messages_;
  // Written by the thread that runs the payload, before the state becomes `done`, as is failure_.
  const std::span<Result> results_;
  std::string failure_;

  const unsigned process_ = fork_count();
  mutable std::mutex mutex_;  // with changed_: of those who wait
  mutable std::condition_variable changed_;
};

}  // namespace warpcipher
