// SPDX-License-Identifier: Apache-2.0
#include "queue/queue.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "dispatch/run.hpp"
#include "dispatch/select.hpp"
#include "queue/state.hpp"

namespace warpcipher {
namespace {

// measure/programs/queue/threads.cpp, docs/queue.md: on 2 cores, 8 are 7% slower than 4; on an H200, 4 use 54% of the
// link, 8 use 81%, and 12 use no more.
constexpr std::size_t in_flight_of_cpu = 4;
constexpr std::size_t in_flight_of_device = 8;

void require_positive(std::size_t value, const char* name) {
  if (value == 0) refuse(name, " of a queue must be at least 1, got 0");
}

void check_limits(const QueueLimits& limits) {
  require_positive(limits.max_bytes, "max_bytes");
  require_positive(limits.max_messages, "max_messages");
  require_positive(limits.memory_limit, "memory_limit");
  // A payload is a batch, and check_messages bounds those.
  if (limits.max_messages > UINT32_MAX) {
    refuse("max_messages of a queue must be below 2^32");
  }
  if (limits.max_delay < std::chrono::microseconds(0) || limits.max_delay > std::chrono::hours(1)) {
    refuse("max_delay of a queue must be between 0 and an hour");
  }
}

// Looks for a device only when max_in_flight was not given.
QueueLimits complete(QueueLimits limits, std::string_view engine) {
  if (limits.max_in_flight == 0) limits.max_in_flight = default_in_flight(engine);
  return limits;
}

Runner runner_of(const std::string& engine) {
  select_engines(engine, {});  // reports a wrong name, or an engine that cannot run, at once
  return [engine](std::span<const Message> messages, std::span<Result> results) { run(engine, messages, results); };
}

}  // namespace

std::size_t default_in_flight(std::string_view engine) {
  return may_use_device(engine) ? in_flight_of_device : in_flight_of_cpu;
}

Queue::Queue(Runner runner, const QueueLimits& limits, Listener listener) {
  check_limits(limits);
  state_ = std::make_shared<State>(std::move(runner), complete(limits, "cpu"), std::move(listener));
  State::start(state_);
}

Queue::Queue(const std::string& engine, const QueueLimits& limits, Listener listener)
    : Queue(runner_of(engine), complete(limits, engine), std::move(listener)) {}

Queue::~Queue() {  // NOLINT(bugprone-exception-escape): a mutex that fails is the end
  if (state_->in_child()) {
    // The threads do not exist in this process, and the mutexes may be locked: leak the state.
    state_->itself = state_;
    return;
  }
  if (!state_->is_worker()) {
    close();
    return;
  }
  stop();
  const std::lock_guard lock(state_->joining);
  for (std::thread& thread : state_->threads) thread.detach();
  state_->threads.clear();
}

Queue::Admission Queue::submit(const std::shared_ptr<Job>& job, std::uint64_t submitter,
                               std::chrono::microseconds timeout) {
  State& state = *state_;
  if (state.in_child()) {
    throw Error(Status::engine_failure,
                "the queue belongs to the process before the fork, and its workers are there: make a new one");
  }
  const std::size_t len = job->memory_len();
  if (len > state.limits.memory_limit) {
    refuse("the message needs ", len, " bytes of the queue's memory, whose limit is ", state.limits.memory_limit);
  }
  const bool wait = timeout > std::chrono::microseconds(0) && !state.is_worker();
  State::Deadline deadline;
  // A timeout beyond the range of the clock means no deadline.
  if (wait && timeout < std::chrono::hours(24 * 365)) deadline = State::Clock::now() + timeout;
  if (state.closing.load()) return Admission::closed;
  if (job->claimed_.exchange(true)) {
    refuse("the job was submitted before: make a new one");
  }
  job->submitter_ = submitter;
  const Admission admission = state.hand_over(job, wait, deadline);
  if (admission != Admission::accepted) job->claimed_.store(false);
  return admission;
}

bool Queue::cancel(Job& job) {
  State& state = *state_;
  if (state.in_child()) return false;
  std::shared_ptr<Job> out;  // destroyed after the lock
  const std::lock_guard lock(state.mutex);
  state.drain();
  if (!job.queued_) return false;
  out = state.take_back(job);
  state.admit();
  return true;
}

void Queue::flush() {
  State& state = *state_;
  if (state.in_child()) return;
  const std::lock_guard lock(state.mutex);
  state.flushed_to = state.next_number.load();
  state.work.notify_one();
}

void Queue::stop() {
  State& state = *state_;
  if (state.in_child()) return;
  const std::lock_guard lock(state.mutex);
  state.begin_to_close();
}

void Queue::close(bool cancel_waiting) {
  State& state = *state_;
  if (state.in_child()) return;
  if (state.is_worker()) {
    refuse("a queue cannot be closed from its own listener: it would wait for itself");
  }
  std::vector<std::shared_ptr<Job>> cancelled;
  {
    const std::lock_guard lock(state.mutex);
    state.drain();
    while (cancel_waiting && !state.order.empty()) cancelled.push_back(state.take_back(state.order.oldest()));
    state.begin_to_close();
  }
  if (state.listener && !cancelled.empty()) state.listener(cancelled);
  {
    std::unique_lock lock(state.mutex);
    state.no_more.wait(lock, [&] { return state.workers == 0; });
  }
  const std::lock_guard lock(state.joining);
  for (std::thread& thread : state.threads) thread.join();
  state.threads.clear();
}

bool Queue::is_worker() const noexcept { return state_->is_worker(); }

bool Queue::ended() const {
  const State& state = *state_;
  if (state.in_child()) return true;
  const std::lock_guard lock(state.mutex);
  return state.workers == 0;
}

QueueStatistics Queue::statistics() const {
  State& state = *state_;
  if (state.in_child()) return {};
  const std::lock_guard lock(state.mutex);
  state.drain();
  QueueStatistics now = state.counts;
  now.waiting_jobs = state.order.jobs();
  now.memory_used = state.memory.used();
  now.most_memory_used = state.memory.most_used();
  return now;
}

const QueueLimits& Queue::limits() const noexcept { return state_->limits; }

// Which submitter gets the memory of a queue when there is not enough for all.

// A call of submit that waits for memory.
struct Queue::State::Waiter {
  const std::shared_ptr<Job>& job;
  bool admitted = false;
  std::condition_variable changed{};
};

// The next is the waiter whose submitter holds least memory; of equals, the oldest. Nobody overtakes it, so short
// messages cannot delay a long one for ever. Jobs enter the fair order here, in the order of admission, and not when
// the waiting threads have woken.
void Queue::State::admit() {
  if (waiters.empty() || closing.load()) return;
  drain();  // the order knows how much each submitter holds
  while (!waiters.empty()) {
    const auto next = std::min_element(waiters.begin(), waiters.end(), [&](const Waiter* a, const Waiter* b) {
      return order.held_by(a->job->submitter_) < order.held_by(b->job->submitter_);
    });
    Waiter& waiter = **next;
    if (!memory.take(waiter.job->memory_len())) return;
    label(waiter.job);
    order.push(*waiter.job);
    work.notify_one();
    waiters.erase(next);
    waiters_count.store(waiters.size(), std::memory_order_relaxed);
    waiter.admitted = true;
    waiter.changed.notify_one();
  }
}

void Queue::State::turn_away() {
  for (Waiter* const waiter : waiters) waiter->changed.notify_one();
}

Queue::Admission Queue::State::hand_over(const std::shared_ptr<Job>& job, bool wait, Deadline deadline) {
  const std::size_t len = job->memory_len();
  if (waiters_count.load(std::memory_order_relaxed) == 0 && memory.take(len)) return push(job);
  Lock lock(mutex);
  if (waiters.empty() && memory.take(len)) {
    lock.unlock();
    return push(job);
  }
  if (!wait) {
    ++counts.refused_jobs;
    return Admission::full;
  }
  Waiter waiter{job};
  waiters.push_back(&waiter);
  waiters_count.store(waiters.size(), std::memory_order_relaxed);
  admit();
  work.notify_one();  // the waiting jobs need not get older
  const auto settled = [&] { return waiter.admitted || closing.load(); };
  if (deadline) {
    waiter.changed.wait_until(lock, *deadline, settled);
  } else {
    waiter.changed.wait(lock, settled);
  }
  if (waiter.admitted) return Admission::accepted;
  waiters.remove(&waiter);
  waiters_count.store(waiters.size(), std::memory_order_relaxed);
  admit();  // this waiter may have held up the others
  if (closing.load()) return Admission::closed;
  ++counts.refused_jobs;
  return Admission::full;
}

}  // namespace warpcipher
