// SPDX-License-Identifier: Apache-2.0
// Where submitters leave jobs for the workers of a queue without a lock: a stack of linked jobs, of which a worker
// takes all at once and turns them round (Treiber 1986). Threads that submit meet in one compare-and-swap; what each
// job costs beyond it is the work of the thread that takes it out.
#pragma once

#include <atomic>

#include "queue/job.hpp"

namespace warpcipher {

class MpscStack {
 public:
  enum class Pushed : std::uint8_t { first, after_others, closed };

  // From any thread. The job holds itself (Job::self_) from here on, unless the inbox is closed.
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

  // The jobs in the order in which they came, linked by next_in_stack_; nullptr when there is none. One thread at a
  // time. What FairOrder writes of a job is on its way by the time it gets there: other cores have it.
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

  // Takes no more jobs from now on; false, and nothing done, when there are some. May be called again.
  bool close() noexcept {
    Job* head = nullptr;
    return head_.compare_exchange_strong(head, closed_mark(), std::memory_order_seq_cst) || head == closed_mark();
  }

 private:
  // No job lies here.
  Job* closed_mark() const noexcept { return reinterpret_cast<Job*>(const_cast<MpscStack*>(this)); }

  alignas(64) std::atomic<Job*> head_{nullptr};
};

}  // namespace warpcipher
