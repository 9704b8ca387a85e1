// SPDX-License-Identifier: Apache-2.0
// A search whose first keys are made on the host. A unit is the keys of 2^loops consecutive numbers. The host writes
// the first key of each unit; the kernel changes the free bits of its loop in the order of a Gray code. This works for
// any template, with or without candidate lists.
//
// It runs as launches, one after another. Two are in flight, so that the device is never idle. launch_size.hpp finds
// their size. A launch that has more hits than the buffer holds is repeated in smaller ones.
#pragma once

#include <cuda_runtime_api.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/wipe.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/engine.hpp"
#include "search/cuda/launch_size.hpp"
#include "search/cuda/units.hpp"
#include "search/searcher.hpp"

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

// Units of a launch: the fewest that fill the device, and the most.
struct UnitCounts {
  std::uint64_t fewest, most;
};

class UnitSearch : public LaunchRanges {
 public:
  // As SearchTask::run.
  std::uint64_t search(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                       const std::atomic<bool>& cancel);

 protected:
  // On the current device. capacity: as for LaunchRanges.
  UnitSearch(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test, std::uint32_t capacity,
             const UnitCounts& units, const UnitLoops& loops = {}, const LaunchTimes& times = {});

  // Starts the kernel. keys: the first key of each unit, in device memory. A hit is {unit, Gray code of the turn (or
  // what number_of takes), mask of units from that one on, any}.
  virtual void start(HitBuffer& buffer, const std::uint8_t* keys, std::uint32_t units) = 0;

  // The offset from the number of its unit's first key that the second word of a hit stands for.
  virtual std::uint32_t number_of(std::uint32_t turn) const { return turn; }

  const KeySpace& space() const { return *space_; }
  // Whether units can have fewer loops than UnitLoops says. The units of a kernel for the template cannot.
  virtual bool divisible() const { return true; }

  const BlockPair& pair() const { return test_->pairs().front(); }
  const KeyTest& test() const { return *test_; }
  std::uint32_t loops() const { return loops_; }

 private:
  std::uint64_t room(std::uint64_t) const override { return units_.most; }
  bool resize(bool longer) override;
  void launch(HitBuffer& buffer, std::uint64_t at, std::uint64_t count) override;
  void report(std::uint64_t at, std::uint64_t count, const HitWords& hit) override;
  void write_keys(std::uint64_t at, std::uint64_t count, std::uint8_t* keys);
  void base_key(const KeyNumber& unit, std::uint8_t* key);

  const std::shared_ptr<const KeySpace> space_;
  const std::shared_ptr<const KeyTest> test_;
  const UnitCounts units_;
  const UnitLoops unit_loops_;
  std::uint32_t most_loops_ = UnitLoops::most;  // that this device is fast enough for
  std::uint32_t wanted_loops_ = 0;              // of the present range
  std::uint32_t loops_ = 0;                     // of a unit
  KeyNumber first_, end_, first_unit_;
  std::vector<KeyNumber>* hits_ = nullptr;
  std::optional<KeyCursor> cursor_;
  KeyNumber cursor_at_;
};

// A copy of a constant array on the current device, for kernels on any stream. Streams of the library do not wait for
// the default stream, and cudaMemcpy from pageable memory may return before the copy has arrived. So the constructor
// waits for the copy.
template <class Array>
class DeviceTable {
 public:
  explicit DeviceTable(const Array& array) : memory_(sizeof array, nullptr, warpcipher::cuda::Wiping::needless) {
    warpcipher::cuda::check(
        cudaMemcpyAsync(memory_.data(), array.data(), sizeof array, cudaMemcpyHostToDevice, nullptr),
        "copy a table to the device");
    warpcipher::cuda::check(cudaStreamSynchronize(nullptr), "copy a table to the device");
  }

  const std::uint8_t* data() const { return memory_.data(); }

 private:
  warpcipher::cuda::StreamBuffer memory_;
};

}  // namespace warpcipher::search::cuda
