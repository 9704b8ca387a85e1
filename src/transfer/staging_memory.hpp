// SPDX-License-Identifier: Apache-2.0
// Page-locked memory that a thread keeps from one run to the next, because more work is waiting: wiping it in between
// would take as long as the link takes for the data. Everywhere else such memory is wiped at the end of each run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device_engine.hpp"

namespace warpcipher {

// While one lives, it holds the memory of runs of its thread. Its owner calls wipe() when nothing waits any more.
class StagingMemory {
 public:
  StagingMemory() noexcept : outer_(current()) { current() = this; }
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;
  ~StagingMemory() {
    wipe();
    current() = outer_;
  }

  struct Block {
    std::uint8_t* data;
    std::size_t size;
    std::size_t used;  // bytes that are to be wiped
  };

  // Page-locked memory of at least `size` bytes; what it held before may still be there.
  static Block take(DeviceEngine& engine, std::size_t size);

  // Gives it back: to the thread's keeper, or wiped to the engine.
  static void give(DeviceEngine& engine, const Block& block) noexcept;

  bool empty() const noexcept { return kept_.empty(); }

  // Wipes what is kept and gives it back to its engine.
  void wipe() noexcept;

 private:
  struct Kept {
    DeviceEngine* engine;
    Block block;
  };

  static StagingMemory*& current() noexcept;

  StagingMemory* const outer_;
  std::vector<Kept> kept_;
};

}  // namespace warpcipher
