// SPDX-License-Identifier: Apache-2.0
// The size of a search's launches: long enough that the cost of starting one does not matter, short enough that the
// search stops soon, and large enough to fill the device. A lane takes the same time for a unit, however few units
// there are. So a launch that does not fill the device is not shorter, only slower; if launches still take too long,
// the units themselves are too long.
#pragma once

#include <algorithm>
#include <cstdint>

namespace warpcipher::search::cuda {

struct LaunchTimes {
  double shortest = 0.04;  // seconds
  double longest = 0.1;
};

class LaunchSize {
 public:
  explicit LaunchSize(const LaunchTimes& times = {}) : times_(times) {}

  // Units of the largest launch, and of the smallest launch that fills the device.
  void limit(std::uint64_t fewest, std::uint64_t most) {
    most_ = std::max<std::uint64_t>(most, 1);
    fewest_ = std::clamp<std::uint64_t>(fewest, 1, most_);
    units_ = std::clamp(units_ == 0 ? most_ / 8 : units_, fewest_, most_);
  }

  // Units of the next launch, if that many are left.
  std::uint64_t units() const { return units_; }

  // Records how long a launch of that many units took.
  void took(std::uint64_t units, double seconds) {
    const bool too_long = seconds > times_.longest;
    if (!too_long) consecutive_long_ = 0;
    if (seconds < times_.shortest && units == units_) {
      const double factor = std::clamp(times_.shortest / std::max(seconds, 1e-6), 2.0, 8.0);
      units_ = std::min(static_cast<std::uint64_t>(static_cast<double>(units_) * factor), most_);
      if (units == most_) ++consecutive_short_;
    } else {
      consecutive_short_ = 0;
    }
    if (!too_long || units < fewest_) return;
    if (units_ > fewest_) {
      units_ = std::max(units_ / 2, fewest_);
    } else {
      ++consecutive_long_;
    }
  }

  // Whether units of half the length, or of twice the length, would be better. One launch is not enough to tell: the
  // machine may have been busy.
  bool units_too_long() const { return consecutive_long_ >= 3; }
  bool units_too_short() const { return consecutive_short_ >= 3; }

  // Starts counting again. resized: units have another length from the next call of limit() on.
  void start_again(bool resized) {
    if (resized) units_ = 0;
    consecutive_long_ = consecutive_short_ = 0;
  }

 private:
  LaunchTimes times_;
  std::uint64_t fewest_ = 1, most_ = 1, units_ = 0;
  std::uint64_t consecutive_long_ = 0, consecutive_short_ = 0;
};

}  // namespace warpcipher::search::cuda
