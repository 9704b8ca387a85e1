// SPDX-License-Identifier: Apache-2.0
#include "pipeline/queue.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "pipeline/fair_order.hpp"
#include "pipeline/run.hpp"
#include "pipeline/select.hpp"

namespace warpcipher {
namespace {

using Clock = std::chrono::steady_clock;

void require_positive(std::size_t value, const char* name) {
  if (value == 0) throw Error(Status::invalid_argument, std::string(name) + " of a queue must be at least 1, got 0");
}

void check_limits(const QueueLimits& limits) {
  require_positive(limits.max_bytes, "max_bytes");
  require_positive(limits.max_messages, "max_messages");
  require_positive(limits.memory_limit, "memory_limit");
  require_positive(limits.max_in_flight, "max_in_flight");
  // A payload is a batch, and check_messages bounds those.
  if (limits.max_messages > UINT32_MAX) {
    throw Error(Status::invalid_argument, "max_messages of a queue must be below 2^32");
  }
  if (limits.max_delay < std::chrono::microseconds(0) || limits.max_delay > std::chrono::hours(1)) {
    throw Error(Status::invalid_argument, "max_delay of a queue must be between 0 and an hour");
  }
}

Runner runner_of(std::string engine) {
  select_engines(engine, {});  // a name that is wrong, or an engine that cannot run, is told at once
  return [name = std::move(engine)](std::span<const Message> messages, std::span<Result> results) {
    run(name, messages, results);
  };
}

// The queue whose worker this thread is.
thread_local const void* working_for = nullptr;

}  // namespace

// Shared by the queue and its workers, so that a queue may go while they finish.
struct Queue::State {
  // A call of submit that waits for memory.
  struct Waiter {
    const std::size_t memory_len;
    const std::uint64_t submitter;
    bool admitted = false;
    std::condition_variable changed;
  };

  State(Runner run, const QueueLimits& given, Listener told)
      : limits(given), runner(std::move(run)), listener(std::move(told)), process(fork_count()) {}

  const QueueLimits limits;
  const Runner runner;
  const Listener listener;
  const unsigned process;

  mutable std::mutex mutex;
  std::condition_variable work;     // for workers: something to look at
  std::condition_variable no_more;  // a worker ended
  FairOrder order;
  std::list<Waiter*> waiters;                           // in the order in which they came
  std::unordered_map<std::uint64_t, std::size_t> held;  // memory by submitter, those with any
  std::uint64_t next_number = 0;
  std::uint64_t flushed_to = 0;  // jobs of lower numbers are to be launched
  bool closing = false;
  std::size_t workers = 0;  // that have not ended
  QueueStatistics counts;

  // Threads, and who joins them: guarded by a mutex of their own, held while joining.
  std::mutex joining;
  std::vector<std::thread> threads;

  bool in_child() const noexcept { return process != fork_count(); }

  // --- memory: all with the mutex held ---

  bool has_room(std::size_t len) const { return len <= limits.memory_limit - counts.memory_used; }

  void hold(std::size_t len, std::uint64_t submitter) {
    counts.memory_used += len;
    counts.most_memory_used = std::max(counts.most_memory_used, counts.memory_used);
    held[submitter] += len;
  }

  void release(std::size_t len, std::uint64_t submitter) {
    counts.memory_used -= len;
    const auto found = held.find(submitter);
    found->second -= len;
    if (found->second == 0) held.erase(found);
  }

  std::size_t held_by(std::uint64_t submitter) const {
    const auto found = held.find(submitter);
    return found == held.end() ? 0 : found->second;
  }

  // Gives free memory to those who wait: first the one whose submitter holds least, of equals the one who came first.
  // Nobody goes past him, so a long message is not put off for ever by short ones.
  void admit() {
    while (!waiters.empty()) {
      const auto next = std::min_element(waiters.begin(), waiters.end(), [&](const Waiter* a, const Waiter* b) {
        return held_by(a->submitter) < held_by(b->submitter);
      });
      Waiter& waiter = **next;
      if (!has_room(waiter.memory_len)) return;
      waiters.erase(next);
      hold(waiter.memory_len, waiter.submitter);
      waiter.admitted = true;
      waiter.changed.notify_one();
    }
  }

  // Takes memory for a job, waiting for it until `deadline` (none: for ever).
  Admission obtain(std::unique_lock<std::mutex>& lock, std::size_t len, std::uint64_t submitter, bool wait,
                   std::optional<Clock::time_point> deadline) {
    if (waiters.empty() && has_room(len)) {
      hold(len, submitter);
      return Admission::accepted;
    }
    if (!wait) return Admission::full;
    Waiter waiter{len, submitter, false, {}};
    waiters.push_back(&waiter);
    admit();
    work.notify_one();  // what is waiting need not get older
    const auto settled = [&] { return waiter.admitted || closing; };
    if (deadline) {
      waiter.changed.wait_until(lock, *deadline, settled);
    } else {
      waiter.changed.wait(lock, settled);
    }
    if (waiter.admitted) return Admission::accepted;
    waiters.remove(&waiter);
    admit();  // he may have been the one who held the others up
    return closing ? Admission::closed : Admission::full;
  }

  // --- workers ---

  // Why a payload should be launched now, if it should. The mutex is held.
  std::optional<FlushReason> reason_to_launch() const {
    if (order.empty()) return std::nullopt;
    if (order.text_len() >= limits.max_bytes) return FlushReason::bytes;
    if (order.messages() >= limits.max_messages) return FlushReason::messages;
    if (order.oldest().number_ < flushed_to) return FlushReason::flush;
    if (closing) return FlushReason::close;
    if (!waiters.empty()) return FlushReason::memory;
    if (Clock::now() >= order.oldest().submitted_ + limits.max_delay) return FlushReason::delay;
    return std::nullopt;
  }

  std::vector<std::shared_ptr<Job>> take_payload(FlushReason reason) {
    std::vector<std::shared_ptr<Job>> jobs = order.take(limits.max_bytes, limits.max_messages);
    ++counts.payloads;
    ++counts.reasons[static_cast<std::size_t>(reason)];
    counts.jobs += jobs.size();
    for (const auto& job : jobs) {
      job->queued_ = false;
      counts.messages += job->messages().size();
      counts.bytes += job->text_len();
      job->set_state(Job::State::running);
    }
    return jobs;
  }

  void work_loop() {
    std::unique_lock lock(mutex);
    while (true) {
      const std::optional<FlushReason> reason = reason_to_launch();
      if (!reason) {
        if (order.empty() && closing) return;
        if (order.empty()) {
          work.wait(lock);
        } else {
          work.wait_until(lock, Clock::time_point(order.oldest().submitted_ + limits.max_delay));
        }
        continue;
      }
      std::vector<std::shared_ptr<Job>> jobs = take_payload(*reason);
      if (!order.empty()) work.notify_one();  // another worker looks after the rest
      lock.unlock();
      Payload::run(runner, jobs);
      finish(jobs);
      jobs.clear();
      lock.lock();
    }
  }

  void finish(std::span<const std::shared_ptr<Job>> jobs) {
    {
      const std::lock_guard lock(mutex);
      for (const auto& job : jobs) {
        release(job->memory_len(), job->submitter_);
        if (!job->failure_.empty()) ++counts.failed_jobs;
      }
      admit();
    }
    for (const auto& job : jobs) job->set_state(Job::State::done);
    if (listener) listener(jobs);
  }

  // Takes a waiting job out. The mutex is held.
  std::shared_ptr<Job> take_back(Job& job) {
    std::shared_ptr<Job> out = order.remove(job);
    job.queued_ = false;
    release(job.memory_len(), job.submitter_);
    ++counts.cancelled_jobs;
    job.set_state(Job::State::cancelled);
    return out;
  }

  // Wakes everyone up: workers to end, submitters to be turned away. The mutex is held.
  void begin_to_close() {
    closing = true;
    work.notify_all();
    for (Waiter* waiter : waiters) waiter->changed.notify_one();
  }

  // Threads start with every signal blocked, so that handlers run on the application's own threads.
  static void start(const std::shared_ptr<State>& state) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      state->threads.reserve(state->limits.max_in_flight);
      while (state->threads.size() < state->limits.max_in_flight) {
        state->threads.emplace_back([state] { state->be_worker(); });
        const std::lock_guard lock(state->mutex);
        ++state->workers;
      }
    } catch (const std::system_error&) {  // a machine that refuses more threads has fewer payloads in flight
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (state->threads.empty()) {
      throw Error(Status::engine_failure, "a queue needs a thread, and the system refuses one");
    }
  }

  void be_worker() {
    working_for = this;
    work_loop();
    const std::lock_guard lock(mutex);
    --workers;
    no_more.notify_all();
  }
};

Queue::Queue(Runner runner, const QueueLimits& limits, Listener listener) {
  check_limits(limits);
  state_ = std::make_shared<State>(std::move(runner), limits, std::move(listener));
  State::start(state_);
}

Queue::Queue(std::string engine, const QueueLimits& limits, Listener listener)
    : Queue(runner_of(std::move(engine)), limits, std::move(listener)) {}

Queue::~Queue() {
  if (state_->in_child()) {
    // Threads that do not exist here cannot be joined, and the mutexes may be locked: the state stays where it is.
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  if (working_for != state_.get()) {
    close();
    return;
  }
  stop();
  const std::lock_guard lock(state_->joining);
  for (std::thread& thread : state_->threads) thread.detach();
  state_->threads.clear();
}

Queue::Admission Queue::submit(std::shared_ptr<Job> job, std::uint64_t submitter, std::chrono::microseconds timeout) {
  State& state = *state_;
  if (state.in_child()) {
    throw Error(Status::engine_failure,
                "the queue belongs to the process before the fork, and its workers are there: make a new one");
  }
  const std::size_t len = job->memory_len();
  if (len > state.limits.memory_limit) {
    throw Error(Status::invalid_argument, "the message needs " + std::to_string(len) +
                                              " bytes of the queue's memory, whose limit is " +
                                              std::to_string(state.limits.memory_limit));
  }
  const bool wait = timeout > std::chrono::microseconds(0) && working_for != &state;
  std::optional<Clock::time_point> deadline;
  // A time that the clock cannot reach is no deadline.
  if (timeout < std::chrono::hours(24 * 365)) deadline = Clock::now() + timeout;
  std::unique_lock lock(state.mutex);
  if (state.closing) return Admission::closed;
  if (job->submitted_ != Clock::time_point{}) {
    throw Error(Status::invalid_argument, "the job was submitted before: make a new one");
  }
  const Admission admission = state.obtain(lock, len, submitter, wait, deadline);
  if (admission != Admission::accepted) {
    if (admission == Admission::full) ++state.counts.refused_jobs;
    return admission;
  }
  if (state.closing) {  // as he woke up; the workers may be gone
    state.release(len, submitter);
    return Admission::closed;
  }
  Job& pushed = *job;
  pushed.submitter_ = submitter;
  pushed.submitted_ = Clock::now();
  pushed.number_ = state.next_number++;
  pushed.queued_ = true;
  const bool first = state.order.empty();
  state.order.push(std::move(job));
  const bool full =
      state.order.text_len() >= state.limits.max_bytes || state.order.messages() >= state.limits.max_messages;
  if (first || full) state.work.notify_one();
  return admission;
}

bool Queue::cancel(Job& job) {
  State& state = *state_;
  if (state.in_child()) return false;
  std::shared_ptr<Job> out;  // let go of after the lock
  const std::lock_guard lock(state.mutex);
  if (!job.queued_) return false;
  out = state.take_back(job);
  state.admit();
  return true;
}

void Queue::flush() {
  State& state = *state_;
  if (state.in_child()) return;
  const std::lock_guard lock(state.mutex);
  state.flushed_to = state.next_number;
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
  if (working_for == &state) {
    throw Error(Status::invalid_argument, "a queue cannot be closed from its own listener: it would wait for itself");
  }
  std::vector<std::shared_ptr<Job>> cancelled;
  {
    const std::lock_guard lock(state.mutex);
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

bool Queue::is_worker() const noexcept { return working_for == state_.get(); }

bool Queue::ended() const {
  const State& state = *state_;
  if (state.in_child()) return true;
  const std::lock_guard lock(state.mutex);
  return state.workers == 0;
}

QueueStatistics Queue::statistics() const {
  const State& state = *state_;
  if (state.in_child()) return {};
  const std::lock_guard lock(state.mutex);
  QueueStatistics now = state.counts;
  now.waiting_jobs = state.order.jobs();
  return now;
}

const QueueLimits& Queue::limits() const noexcept { return state_->limits; }

}  // namespace warpcipher
