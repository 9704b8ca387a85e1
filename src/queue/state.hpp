// SPDX-License-Identifier: Apache-2.0
// The shared state of a queue and its workers. A submitter takes memory and pushes the job onto a stack, both without a
// lock. Everything else holds the mutex: workers move jobs from the stack into the fair order, take payloads from it
// and settle them, a few hundred messages at a time.
//
// A worker that finds nothing to launch sleeps. One of the sleeping workers, the watcher, wakes when the oldest job has
// waited long enough. A submitter wakes a sleeping worker, be it the watcher or another, when it
//   - pushed the first job onto the empty stack without a watcher, or
//   - finds that the waiting jobs now fill a payload.
// No job is overlooked: a submitter first pushes its job and then looks for sleeping workers; a worker first announces
// that it sleeps and then looks at the stack. All of this has one order (memory_order_seq_cst), so of two such threads
// at least one sees the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "queue/job.hpp"
#include "queue/queue.hpp"

namespace warpcipher {

// The memory limit of a queue. Many threads take from it without a lock.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}

  // Returns false and takes nothing when less than `len` is left.
  bool take(std::size_t len) noexcept {
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (len > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + len, std::memory_order_relaxed));
    std::size_t most = most_used_.load(std::memory_order_relaxed);
    while (used + len > most && !most_used_.compare_exchange_weak(most, used + len, std::memory_order_relaxed)) {
    }
    return true;
  }

  void release(std::size_t len) noexcept { used_.fetch_sub(len, std::memory_order_relaxed); }

  std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::size_t most_used() const noexcept { return most_used_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> most_used_{0};
};

// A stack with many producers and one consumer, without a lock: submitters push jobs, and a worker takes all of them at
// once and reverses their order (Treiber 1986). Submitters contend only for one compare-and-swap; the rest of the work
// for a job is done by the thread that takes it.
class MpscStack {
 public:
  enum class Pushed : std::uint8_t { first, after_others, closed };

  // From any thread. The caller has set Job::self_, which keeps the job alive while it is here. `closed`: the job was
  // not pushed.
  Pushed push(Job& job) noexcept {
    Job* head = head_.load(std::memory_order_relaxed);
    do {
      if (head == closed_mark()) return Pushed::closed;
      job.next_in_stack_ = head;
    } while (!head_.compare_exchange_weak(head, &job, std::memory_order_seq_cst, std::memory_order_relaxed));
    return head == nullptr ? Pushed::first : Pushed::after_others;
  }

  bool empty() const noexcept {
    const Job* const head = head_.load(std::memory_order_seq_cst);
    return head == nullptr || head == closed_mark();
  }

  // All jobs, the oldest first, linked by next_in_stack_; nullptr when there is none. One thread at a time. Prefetches
  // the part of each job that FairOrder writes next, which lies in another core's cache.
  Job* take_all() noexcept {
    if (empty()) return nullptr;
    Job* newest = head_.exchange(nullptr, std::memory_order_seq_cst);
    Job* oldest = nullptr;
    while (newest != nullptr) {
      Job* const before = newest->next_in_stack_;
      __builtin_prefetch(&newest->by_submitter_, 1);
      newest->next_in_stack_ = oldest;
      oldest = newest;
      newest = before;
    }
    return oldest;
  }

  // Refuses jobs from now on. Returns false and does nothing when the stack is not empty. May be called again.
  bool close() noexcept {
    Job* head = nullptr;
    return head_.compare_exchange_strong(head, closed_mark(), std::memory_order_seq_cst) || head == closed_mark();
  }

 private:
  // An address that no job can have.
  Job* closed_mark() const noexcept { return reinterpret_cast<Job*>(const_cast<MpscStack*>(this)); }

  alignas(64) std::atomic<Job*> head_{nullptr};
};

struct Queue::State {
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  using Deadline = std::optional<Clock::time_point>;

  State(Runner run, const QueueLimits& given, Listener told)
      : limits(given),
        runner(std::move(run)),
        listener(std::move(told)),
        process(fork_count()),
        memory(given.memory_limit) {}

  bool in_child() const noexcept { return process != fork_count(); }

  // True when this thread is a worker of this queue.
  bool is_worker() const noexcept;

  // --- memory ---

  // Takes memory for a job and accepts it. With `wait`, waits for memory until `deadline`, or for ever without one.
  Admission hand_over(const std::shared_ptr<Job>& job, bool wait, Deadline deadline);

  // Gives free memory to submitters that wait, and accepts their jobs. The mutex is held.
  void admit();

  // Wakes submitters that wait, because the queue is closing. The mutex is held.
  void turn_away();

  // --- workers.cpp ---

  static void start(const std::shared_ptr<State>& state);

  // Pushes a job onto the stack. Its memory has been taken.
  Admission push(const std::shared_ptr<Job>& job);

  // Fills in the workers' facts of a job. Before they may see it.
  void label(const std::shared_ptr<Job>& job);

  // Moves jobs from the stack into the fair order. The mutex is held, as in all functions that follow.
  void drain();

  // Cancels a waiting job.
  std::shared_ptr<Job> take_back(Job& job);

  // Wakes workers, which will end, and submitters, which are refused.
  void begin_to_close();

  const QueueLimits limits;
  const Runner runner;
  const Listener listener;
  const unsigned process;

  // For submitters. Each group has its own cache line.
  MemoryBudget memory;
  std::atomic<std::size_t> waiters_count{0};  // waiters.size()
  std::atomic<bool> closing{false};
  MpscStack submitted;
  alignas(64) std::atomic<std::uint64_t> next_number{0};
  std::atomic<std::size_t> waiting_len{0};  // bytes of text on the stack and in the order
  std::atomic<std::size_t> waiting_messages{0};
  alignas(64) std::atomic<std::size_t> asleep{0};  // workers
  std::atomic<bool> unwatched{false};              // workers sleep, and no thread watches
  std::atomic<bool> waking{false};                 // a submitter is waking a worker: others need not

  mutable std::mutex mutex;
  std::condition_variable work;     // for workers: there may be something to do
  std::condition_variable no_more;  // a worker ended
  FairOrder order;
  struct Waiter;
  std::list<Waiter*> waiters;    // oldest first
  std::uint64_t flushed_to = 0;  // launch jobs with lower numbers at once
  std::size_t workers = 0;       // that have not ended
  std::size_t watchers = 0;      // sleeping workers that watch
  QueueStatistics counts;

  // Guards `threads`, and is held while they are joined.
  std::mutex joining;
  std::vector<std::thread> threads;

  std::shared_ptr<State> itself;  // only in the child of a fork: never destroyed

 private:
  bool is_full() const {
    return waiting_len.load(std::memory_order_seq_cst) >= limits.max_bytes ||
           waiting_messages.load(std::memory_order_seq_cst) >= limits.max_messages;
  }
  void wake_one();
  bool sleep(Lock& lock, Clock::time_point until);
  std::optional<FlushReason> reason_to_launch() const;
  std::vector<std::shared_ptr<Job>> take_payload(FlushReason reason);
  void finish(std::span<const std::shared_ptr<Job>> jobs);
  void work_loop();
  void be_worker();
  void forget(const Job& job);
};

}  // namespace warpcipher
