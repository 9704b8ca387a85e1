// SPDX-License-Identifier: Apache-2.0
// Copies and wipes of host memory by all cores: one core moves far fewer bytes a second than a GPU's link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device_copy.hpp"

namespace warpcipher {

// Adds a range; one that goes on where the last one ends, on both sides, makes that one longer. Empty ones are left
// out.
void append_range(std::vector<DeviceCopy>& ranges, const DeviceCopy& range);

// Ranges that are copied in shares by whichever threads call help(). One thread owns the job: starts it, learns that it
// is done, cancels it.
class CopyJob {
 public:
  CopyJob() = default;
  CopyJob(const CopyJob&) = delete;
  CopyJob& operator=(const CopyJob&) = delete;
  ~CopyJob() { cancel(); }

  // Of ranges none overlaps another's target. The job before is done.
  void start(const std::vector<DeviceCopy>& ranges);

  // Copies a share; false when all are taken. From any thread, at any time in the job's life.
  bool help();

  bool done() const { return left_.load(std::memory_order_acquire) == 0; }

  // Gives up the shares that nobody has taken, and waits for the others.
  void cancel() noexcept;

 private:
  // Where in the ranges a share begins.
  struct Position {
    std::size_t range;
    std::size_t offset;
  };

  void find_shares();
  void copy_share(Position from, Position to) const;

  std::vector<DeviceCopy> ranges_;
  std::vector<Position> starts_;         // one more than shares
  std::atomic<std::uint64_t> taken_{0};  // the number of shares << 32 | those taken, so that both are read at once
  std::atomic<std::size_t> left_{0};     // shares not yet copied
};

void wipe_in_parallel(void* memory, std::size_t len) noexcept;

}  // namespace warpcipher
