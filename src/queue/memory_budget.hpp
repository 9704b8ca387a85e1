// SPDX-License-Identifier: Apache-2.0
// The memory limit of a queue. Many threads take from it without a lock.
#pragma once

#include <atomic>
#include <cstddef>

namespace warpcipher {

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

}  // namespace warpcipher
