// SPDX-License-Identifier: Apache-2.0
// How many runs go through devices at the same time in this process, as payloads of a queue do: a run that is alone may
// have all cores, and spin while it waits; of several each leaves the cores to the others.
#pragma once

#include <atomic>
#include <cstddef>

namespace warpcipher {

// A run, from its beginning to its end.
class LoadedRun {
 public:
  LoadedRun() noexcept { count().fetch_add(1, std::memory_order_relaxed); }
  LoadedRun(const LoadedRun&) = delete;
  LoadedRun& operator=(const LoadedRun&) = delete;
  ~LoadedRun() { count().fetch_sub(1, std::memory_order_relaxed); }

  // Those under way now.
  static std::size_t runs() noexcept { return count().load(std::memory_order_relaxed); }

 private:
  static std::atomic<std::size_t>& count() noexcept {
    static std::atomic<std::size_t> runs{0};
    return runs;
  }
};

}  // namespace warpcipher
