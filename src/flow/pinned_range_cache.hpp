// SPDX-License-Identifier: Apache-2.0
// The page-locked ranges of the caller's memory that a device can access by itself, each asked of the driver once: for
// example the one buffer of each client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/device_engine.hpp"

namespace warpcipher {

class PinnedRangeCache {
 public:
  explicit PinnedRangeCache(const DeviceEngine& engine) : engine_(engine) {}

  // Whether one allocation that the device can access holds all `len` bytes.
  bool holds(const void* data, std::size_t len) { return len == 0 || range_of(data).holds(data, len); }

  // The allocation that holds the byte at `data`; empty when the device cannot access it.
  AddressRange range_of(const void* data) {
    const auto holds_it = [&](const AddressRange& range) { return range.holds(data, 1); };
    if (last_ < known_.size() && holds_it(known_[last_])) return known_[last_];
    const auto found = std::find_if(known_.begin(), known_.end(), holds_it);
    last_ = static_cast<std::size_t>(found - known_.begin());
    if (found != known_.end()) return *found;
    if (known_.size() == most_known) known_.clear();
    last_ = known_.size();
    known_.push_back(engine_.find_page_locked(data));  // takes 0.2 us
    return known_.back();
  }

 private:
  static constexpr std::size_t most_known = 64;

  const DeviceEngine& engine_;
  std::vector<AddressRange> known_;
  std::size_t last_ = 0;  // neighbours mostly lie in the same one
};

}  // namespace warpcipher
