// SPDX-License-Identifier: Apache-2.0
// How many transfers this process has in progress, for example one for each payload of a queue. A transfer that is
// alone may use all cores and spin while it waits; one of several leaves the cores to the others.
#pragma once

#include <atomic>
#include <cstddef>

namespace warpcipher {

// Counts one transfer, from its beginning to its end.
class ActiveTransfer {
 public:
  ActiveTransfer() noexcept { counter().fetch_add(1, std::memory_order_relaxed); }
  ActiveTransfer(const ActiveTransfer&) = delete;
  ActiveTransfer& operator=(const ActiveTransfer&) = delete;
  ~ActiveTransfer() { counter().fetch_sub(1, std::memory_order_relaxed); }

  // Transfers in progress now.
  static std::size_t count() noexcept { return counter().load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::size_t>& counter() noexcept {
    static std::atomic<std::size_t> transfers{0};
    return transfers;
  }
};

}  // namespace warpcipher
