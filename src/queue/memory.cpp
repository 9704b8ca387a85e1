// SPDX-License-Identifier: Apache-2.0
// Which submitter gets the memory of a queue when there is not enough for all.
#include <algorithm>

#include "queue/state.hpp"

namespace warpcipher {

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
