// SPDX-License-Identifier: Apache-2.0
// Runs a search as launches, one after another. Two are in flight, so that the device is never idle. launch_size.hpp
// finds their size. A launch that has more hits than the buffer holds is repeated in smaller ones.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/cuda/runtime/memory.hpp"
#include "engine/engine.hpp"
#include "search/cuda/launch_size.hpp"

namespace warpcipher::search::cuda {

// A kernel's report, 16 bytes; the kernel defines their meaning.
struct HitWords {
  std::uint32_t words[4];
};

// Where launches write hits, on the current device: the number of hits in the first 16 bytes, then the hits.
class HitBuffer {
 public:
  explicit HitBuffer(std::uint32_t capacity);
  ~HitBuffer();
  HitBuffer(const HitBuffer&) = delete;
  HitBuffer& operator=(const HitBuffer&) = delete;

  Stream stream() const { return stream_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_->data()); }
  std::uint32_t capacity() const { return capacity_; }

  // In the stream's order.
  void clear();

  // Waits for the stream. False: there were more hits than capacity().
  bool take(std::vector<HitWords>& hits);

 private:
  Stream stream_ = nullptr;
  std::uint32_t capacity_;
  std::unique_ptr<warpcipher::cuda::StreamBuffer> memory_;
};

// A search that is launched in ranges of whole units.
class LaunchRanges {
 public:
  virtual ~LaunchRanges() = default;

  // Tests units 0 to total - 1. Returns how many it tested, from the first: fewer than total where it was cancelled, or
  // where resize() returned true. fewest, most: as LaunchSize::limit.
  std::uint64_t run(std::uint64_t total, std::uint64_t fewest, std::uint64_t most, const std::atomic<bool>& cancel);

 protected:
  // capacity: hits of a launch of one unit, or more.
  explicit LaunchRanges(std::uint32_t capacity, const LaunchTimes& times = {});

  // How many units one launch can take from `at` on.
  virtual std::uint64_t room(std::uint64_t at) const = 0;
  virtual void launch(HitBuffer& buffer, std::uint64_t at, std::uint64_t count) = 0;
  // Asks for units of another length, which suit the device better: longer or shorter. True: the next run has them.
  virtual bool resize([[maybe_unused]] bool longer) { return false; }

  // A hit of the launch of these units.
  virtual void report(std::uint64_t at, std::uint64_t count, const HitWords& hit) = 0;

 private:
  void redo(std::uint64_t at, std::uint64_t count);
  bool collect(HitBuffer& buffer, std::uint64_t at, std::uint64_t count);

  std::array<HitBuffer, 3> buffers_;  // two in flight and one for repeated launches
  std::vector<HitWords> hits_;
  LaunchSize size_;
};

}  // namespace warpcipher::search::cuda
