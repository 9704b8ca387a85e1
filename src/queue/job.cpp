// SPDX-License-Identifier: Apache-2.0
#include "queue/job.hpp"

#include <atomic>

namespace warpcipher {
namespace {

// A message's cost in addition to its bytes: descriptors here and in the engine. Bounds the number of empty
// messages.
constexpr std::size_t descriptor_len = 512;

}  // namespace

Job::Job(const Message& message) : message_(message) {
  const Message& m = message_;
  if (m.memory != Memory::host) {
    throw Error(Status::invalid_argument,
                "a queue takes messages in host memory: run data on a GPU as a batch, where it lies");
  }
  check_messages({&m, 1});
  text_len_ = m.in_len;
  memory_len_ = m.in_len + (m.in == m.out ? 0 : m.output_len()) + m.aad_len + m.tag_len + descriptor_len;
}

Job::State Job::state() const {
  check_process();
  return state_.load(std::memory_order_acquire);
}

void Job::wait() const {
  check_process();
  if (ended()) return;
  std::unique_lock lock(mutex_);
  awaited_.store(true, std::memory_order_seq_cst);
  changed_.wait(lock, [&] { return ended(); });
}

bool Job::wait_for(std::chrono::microseconds time) const {
  check_process();
  if (time > std::chrono::hours(24 * 365)) return wait(), true;  // further than clocks count
  std::unique_lock lock(mutex_);
  awaited_.store(true, std::memory_order_seq_cst);
  return changed_.wait_for(lock, time, [&] { return ended(); });
}

// After a fork the mutex may stay locked for ever.
void Job::check_process() const {
  if (process_ != fork_count()) {
    throw Error(Status::engine_failure, "the job belongs to the process before the fork, whose queue does the work");
  }
}

// When a job is done usually no thread waits for it yet; then no thread is woken.
void Job::set_state(State state) {
  if (state == State::running) return state_.store(state, std::memory_order_release);  // for which nobody waits
  state_.store(state, std::memory_order_seq_cst);
  if (!awaited_.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace warpcipher
