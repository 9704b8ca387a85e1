// SPDX-License-Identifier: Apache-2.0
// What a queue and its workers share. A submitter takes memory, leaves the job in the inbox and goes, without a lock;
// everything else has the mutex: workers bring what lies in the inbox into the fair order, take payloads from it and
// settle them, a few hundred messages at a time.
//
// A worker that finds nothing to launch sleeps. One of those who sleep, the watcher, wakes when the oldest job has
// waited long enough; the others, and the watcher too, are woken by a submitter who
//   - put the first job into the inbox while nobody watches, or
//   - finds that what waits now fills a payload.
// So that no job is overlooked, submitters first leave the job and then look who sleeps, and workers first say that
// they sleep and then look into the inbox: of two such threads one sees the other (all of it in one order,
// memory_order_seq_cst).
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "queue/fair_order.hpp"
#include "queue/memory_budget.hpp"
#include "queue/mpsc_stack.hpp"
#include "queue/queue.hpp"

namespace warpcipher {

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

  // --- queue_memory.cpp ---

  // Takes memory for a job, waiting for it until `deadline` (none: for ever), and takes the job up.
  Admission hand_over(const std::shared_ptr<Job>& job, bool wait, Deadline deadline);

  // Gives free memory to those who wait, and takes their jobs up. The mutex is held.
  void admit();

  // Wakes those who wait, as the queue is closing. The mutex is held.
  void turn_away();

  // --- queue_workers.cpp ---

  static void start(const std::shared_ptr<State>& state);

  // Leaves a job in the inbox, for which memory was taken.
  Admission push(const std::shared_ptr<Job>& job);

  // What a job needs before workers may see it.
  void label(const std::shared_ptr<Job>& job);

  // Brings jobs from the inbox into the order. The mutex is held, as for all that follow.
  void drain();

  // Takes a waiting job out.
  std::shared_ptr<Job> take_back(Job& job);

  // Wakes everyone up: workers to end, submitters to be turned away.
  void begin_to_close();

  const QueueLimits limits;
  const Runner runner;
  const Listener listener;
  const unsigned process;

  // What submitters touch: each group in a line of the cache.
  MemoryBudget memory;
  std::atomic<std::size_t> waiters_count{0};  // waiters.size()
  std::atomic<bool> closing{false};
  MpscStack submitted;
  alignas(64) std::atomic<std::uint64_t> next_number{0};
  std::atomic<std::size_t> waiting_len{0};  // text in the inbox and in the order
  std::atomic<std::size_t> waiting_messages{0};
  alignas(64) std::atomic<std::size_t> asleep{0};  // workers
  std::atomic<bool> unwatched{false};              // some are asleep, and none of them watches
  std::atomic<bool> waking{false};                 // a submitter is waking one: others need not

  mutable std::mutex mutex;
  std::condition_variable work;     // for workers: something to look at
  std::condition_variable no_more;  // a worker ended
  FairOrder order;
  struct Waiter;
  std::list<Waiter*> waiters;    // in the order in which they came
  std::uint64_t flushed_to = 0;  // jobs of lower numbers are to be launched
  std::size_t workers = 0;       // that have not ended
  std::size_t watchers = 0;      // of those asleep
  QueueStatistics counts;

  // Threads, and who joins them: guarded by a mutex of their own, held while joining.
  std::mutex joining;
  std::vector<std::thread> threads;

  std::shared_ptr<State> itself;  // in the child of a fork alone: kept for good

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
