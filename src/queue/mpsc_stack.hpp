// SPDX-License-Identifier: Apache-2.0
// A stack with many producers and one consumer, without a lock: submitters push jobs, and a worker takes all of them at
// once and reverses their order (Treiber 1986). Submitters contend only for one compare-and-swap; the rest of the work
// for a job is done by the thread that takes it.
#pragma once

#include <atomic>

#include "queue/job.hpp"

namespace warpcipher {

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

}  // namespace warpcipher
