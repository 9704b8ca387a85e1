// SPDX-License-Identifier: Apache-2.0
// Copies and wipes of host memory by all cores: one core is much slower than a GPU's link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device_engine.hpp"

namespace warpcipher {

// Adds a range, or extends the last one when the range follows it on both sides. Leaves empty ranges out.
void append_range(std::vector<DeviceCopy>& ranges, const DeviceCopy& range);

// A list of copies that is cut into shares; threads that call help() copy them. One thread owns the job: it calls
// start(), done() and cancel().
class CopyJob {
 public:
  CopyJob() = default;
  CopyJob(const CopyJob&) = delete;
  CopyJob& operator=(const CopyJob&) = delete;
  ~CopyJob() { cancel(); }

  // The former job is done. No range overlaps the target of another.
  void start(const std::vector<DeviceCopy>& ranges);

  // Copies a share; false when all are taken. From any thread, at any time until the job is destroyed.
  bool help();

  bool done() const { return left_.load(std::memory_order_acquire) == 0; }

  // Drops the shares that no thread has taken, and waits for the others.
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
