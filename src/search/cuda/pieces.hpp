// SPDX-License-Identifier: Apache-2.0
// Runs a range as a row of launches: two under way, so that the device is never idle; of a size that launch_size.hpp
// finds; cut smaller where they have more hits than there is room for.
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

// What a kernel reports, 16 bytes; the kernel says what they mean.
struct HitWords {
  std::uint32_t words[4];
};

// Where launches report hits: their number in the first 16 bytes, then the hits. On the current device.
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

  // Waits for the stream. False when there were more than capacity().
  bool take(std::vector<HitWords>& hits);

 private:
  Stream stream_ = nullptr;
  std::uint32_t capacity_;
  std::unique_ptr<warpcipher::cuda::StreamBuffer> memory_;
};

// Work that can be launched in pieces of whole units.
class Pieces {
 public:
  virtual ~Pieces() = default;

  // Tests units 0 to total - 1; returns how many, from the first, were tested: less where it was cancelled, or resize()
  // has agreed. fewest, most: as LaunchSize::limit.
  std::uint64_t run(std::uint64_t total, std::uint64_t fewest, std::uint64_t most, const std::atomic<bool>& cancel);

 protected:
  // capacity: hits of a launch of one unit, or more.
  explicit Pieces(std::uint32_t capacity, const LaunchTimes& times = {});

  // The units from `at` on that one launch can have.
  virtual std::uint64_t room(std::uint64_t at) const = 0;
  virtual void launch(HitBuffer& buffer, std::uint64_t at, std::uint64_t count) = 0;
  // Units of another length would suit the device better: `longer`, or shorter. Whether the next run will have them.
  virtual bool resize([[maybe_unused]] bool longer) { return false; }

  // A hit of that launch.
  virtual void report(std::uint64_t at, std::uint64_t count, const HitWords& hit) = 0;

 private:
  void redo(std::uint64_t at, std::uint64_t count);
  bool collect(HitBuffer& buffer, std::uint64_t at, std::uint64_t count);

  std::array<HitBuffer, 3> buffers_;  // two under way and one for what is done again
  std::vector<HitWords> hits_;
  LaunchSize size_;
};

}  // namespace warpcipher::search::cuda
