// SPDX-License-Identifier: Apache-2.0
// A search whose first keys are made on the host. A unit is the keys of 2^loops consecutive numbers. The host writes
// the first key of each unit; the kernel changes the free bits of its loop in the order of a Gray code. This works for
// any template, with or without candidate lists.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/wipe.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "search/cuda/launch_ranges.hpp"
#include "search/cuda/unit_loops.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search::cuda {

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

}  // namespace warpcipher::search::cuda
