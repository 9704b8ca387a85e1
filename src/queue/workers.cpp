// SPDX-License-Identifier: Apache-2.0
// The workers of a queue: when they sleep and launch, and how jobs end.
#include <algorithm>
#include <chrono>
#include <system_error>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "flow/slot_memory.hpp"
#include "queue/state.hpp"

namespace warpcipher {
namespace {

// The queue that this thread is a worker of.
thread_local const void* working_for = nullptr;

// A worker that is idle for this long wipes its buffers. Sooner, the next payload would mostly overwrite the wiped
// bytes.
constexpr std::chrono::milliseconds time_before_wipe{1};

}  // namespace

bool Queue::State::is_worker() const noexcept { return working_for == this; }

// --- jobs come ---

void Queue::State::label(const std::shared_ptr<Job>& handed_over) {
  Job& job = *handed_over;
  job.submitted_ = Clock::now();
  job.number_ = next_number.fetch_add(1, std::memory_order_relaxed);
  waiting_len.fetch_add(job.text_len(), std::memory_order_seq_cst);
  waiting_messages.fetch_add(1, std::memory_order_seq_cst);
  job.self_ = handed_over;
}

Queue::Admission Queue::State::push(const std::shared_ptr<Job>& job) {
  label(job);
  const MpscStack::Pushed pushed = submitted.push(*job);  // from here on the workers own the job
  if (pushed == MpscStack::Pushed::closed) {
    job->self_.reset();
    forget(*job);
    memory.release(job->memory_len());
    return Admission::closed;
  }
  if (asleep.load(std::memory_order_seq_cst) == 0) return Admission::accepted;
  const bool is_first = pushed == MpscStack::Pushed::first && unwatched.load(std::memory_order_seq_cst);
  if ((is_first || is_full()) && !waking.exchange(true, std::memory_order_seq_cst)) wake_one();
  return Admission::accepted;
}

void Queue::State::wake_one() {
  const std::lock_guard lock(mutex);
  if (asleep.load() == 0) waking.store(false);  // it woke by itself, and will look at the stack
  work.notify_one();
}

void Queue::State::drain() {
  for (Job* job = submitted.take_all(); job != nullptr;) {
    Job* const next = job->next_in_stack_;
    order.push(*job);
    job = next;
  }
}

// --- workers ---

// True when there may be something to do; false when it is `until`.
bool Queue::State::sleep(Lock& lock, Clock::time_point until) {
  const auto look_again = [&] { return !submitted.empty(); };
  const bool watches = !order.empty() && watchers == 0;
  asleep.fetch_add(1, std::memory_order_seq_cst);
  if (watches) ++watchers;
  unwatched.store(watchers == 0, std::memory_order_seq_cst);
  waking.store(false, std::memory_order_seq_cst);
  if (!look_again()) {
    if (watches) {
      work.wait_until(lock, std::min(until, order.oldest().submitted_ + limits.max_delay));
    } else if (until != Clock::time_point::max()) {
      work.wait_until(lock, until);
    } else {
      work.wait(lock);
    }
  }
  if (watches) --watchers;
  asleep.fetch_sub(1, std::memory_order_seq_cst);
  waking.store(false, std::memory_order_seq_cst);
  // This thread looks at the stack now. If it leaves with a payload, another worker must watch.
  unwatched.store(watchers == 0 && asleep.load() != 0, std::memory_order_seq_cst);
  return until == Clock::time_point::max() || Clock::now() < until;
}

// Why a payload should be launched now, if it should.
std::optional<FlushReason> Queue::State::reason_to_launch() const {
  if (order.empty()) return std::nullopt;
  if (order.text_len() >= limits.max_bytes) return FlushReason::bytes;
  if (order.jobs() >= limits.max_messages) return FlushReason::messages;
  if (order.oldest().number_ < flushed_to) return FlushReason::flush;
  if (closing.load()) return FlushReason::close;
  if (!waiters.empty()) return FlushReason::memory;
  if (Clock::now() >= order.oldest().submitted_ + limits.max_delay) return FlushReason::delay;
  return std::nullopt;
}

void Queue::State::forget(const Job& job) {
  waiting_len.fetch_sub(job.text_len(), std::memory_order_relaxed);
  waiting_messages.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<Job>> Queue::State::take_payload(FlushReason reason) {
  std::vector<std::shared_ptr<Job>> jobs = order.take(limits.max_bytes, limits.max_messages);
  std::size_t len = 0;
  for (const auto& job : jobs) {
    len += job->text_len();
    job->set_state(Job::State::running);
  }
  waiting_len.fetch_sub(len, std::memory_order_relaxed);
  waiting_messages.fetch_sub(jobs.size(), std::memory_order_relaxed);
  ++counts.payloads;
  ++counts.reasons[static_cast<std::size_t>(reason)];
  counts.messages += jobs.size();
  counts.bytes += len;
  return jobs;
}

void Queue::State::work_loop() {
  PinnedCache buffers;
  Lock lock(mutex);
  while (true) {
    drain();
    const std::optional<FlushReason> reason = reason_to_launch();
    if (!reason) {
      if (order.empty() && closing.load() && submitted.close()) return;
      if (buffers.empty()) {
        sleep(lock, Clock::time_point::max());
      } else if (const Clock::time_point until = Clock::now() + time_before_wipe; !sleep(lock, until)) {
        lock.unlock();
        buffers.wipe();
        lock.lock();
      }
      continue;
    }
    std::vector<std::shared_ptr<Job>> jobs = take_payload(*reason);
    // Another worker takes the rest, and jobs that come in while nobody watches.
    if (!order.empty() || !submitted.empty()) work.notify_one();
    lock.unlock();
    Payload::run(runner, jobs);
    finish(jobs);
    jobs.clear();
    lock.lock();
  }
}

void Queue::State::finish(std::span<const std::shared_ptr<Job>> jobs) {
  {
    const std::lock_guard lock(mutex);
    std::size_t len = 0;
    for (const auto& job : jobs) {
      len += job->memory_len();
      order.release(*job);
      if (!job->failure_.empty()) ++counts.failed_jobs;
    }
    memory.release(len);
    admit();
  }
  for (const auto& job : jobs) job->set_state(Job::State::done);
  if (listener) listener(jobs);
}

std::shared_ptr<Job> Queue::State::take_back(Job& job) {
  std::shared_ptr<Job> out = order.remove(job);
  forget(job);
  order.release(job);
  memory.release(job.memory_len());
  ++counts.cancelled_jobs;
  job.set_state(Job::State::cancelled);
  return out;
}

// --- begin and end ---

void Queue::State::begin_to_close() {
  closing.store(true);
  work.notify_all();
  turn_away();
}

void Queue::State::start(const std::shared_ptr<State>& state) {
  try {
    const SignalsBlocked blocked;
    state->threads.reserve(state->limits.max_in_flight);
    while (state->threads.size() < state->limits.max_in_flight) {
      state->threads.emplace_back([state] { state->be_worker(); });
      const std::lock_guard lock(state->mutex);
      ++state->workers;
    }
  } catch (const std::system_error&) {  // no more threads: fewer payloads are in flight
  }
  if (state->threads.empty()) {
    throw Error(Status::engine_failure, "a queue needs a thread, and the system refuses one");
  }
}

void Queue::State::be_worker() {
  working_for = this;
  work_loop();
  const std::lock_guard lock(mutex);
  --workers;
  no_more.notify_all();
}

}  // namespace warpcipher
