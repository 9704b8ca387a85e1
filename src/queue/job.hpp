// SPDX-License-Identifier: Apache-2.0
// A job: what one call of Queue::submit hands over, one message or a small batch, and what becomes of it. It is the
// future of its messages: any thread may wait for it.
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
#include "queue/intrusive_list.hpp"

namespace warpcipher {

// Forks that this process descends from since the library was loaded: a number that tells a child from its parent.
unsigned fork_count() noexcept;

struct Submitter;

class Job {
 public:
  enum class State : std::uint8_t {
    waiting,    // not launched, perhaps not yet submitted
    running,    // in a payload on its way
    done,       // results() are valid
    cancelled,  // taken back before it was launched; nothing was written
  };

  // Messages in host memory. What they point to, and their keys, must stay until the job is done or cancelled.
  explicit Job(std::vector<Message> messages);
  explicit Job(const Message& message);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  State state() const;

  // Wait until the job is done or cancelled; wait_for returns false when it was not within `time`. Throw
  // Error{engine_failure} in the child of a fork when the job was left behind in the parent.
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

  // What a queue reads of a job that another core wrote lies side by side. The submitter writes it before it pushes the
  // job into the inbox; then the queue's mutex guards it. Not aligned to lines of the cache: aligned memory takes
  // malloc longer than all else that a submission does.
  Job* next_in_stack_ = nullptr;
  std::shared_ptr<Job> self_;  // the queue's own hold of a job that waits
  std::size_t text_len_ = 0;
  std::size_t memory_len_ = 0;
  std::uint64_t submitter_ = 0;
  std::uint64_t number_ = 0;
  Clock::time_point submitted_{};
  std::atomic<bool> claimed_{false};  // by a call of submit
  bool queued_ = false;               // in the FairOrder
  Submitter* from_ = nullptr;         // whose memory it is counted with
  ListLinks<Job> by_age_, by_submitter_;

  std::atomic<State> state_{State::waiting};
  mutable std::atomic<bool> awaited_{false};  // someone waits, or did

  // Nearly every job is one message, which lies here: memory that one thread allocates and another frees is slow.
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
