// SPDX-License-Identifier: Apache-2.0
// Page-locked memory of the caller that a device itself reaches, as it was looked up: a buffer of each client, say.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/device_engine.hpp"

namespace warpcipher {

class Reach {
 public:
  explicit Reach(const DeviceEngine& engine) : engine_(engine) {}

  bool holds(const void* data, std::size_t len) { return len == 0 || around(data).holds(data, len); }

  // The allocation that holds a byte; empty when the device does not reach it.
  AddressRange around(const void* data) {
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
  std::size_t last_ = 0;  // neighbours mostly lie in one
};

}  // namespace warpcipher
