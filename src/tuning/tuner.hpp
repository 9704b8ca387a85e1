// SPDX-License-Identifier: Apache-2.0
// Measures this machine: each policy of each device, in device memory; the policies of host transfers; and, for `auto`,
// the cost of every algorithm on the CPU, through a device from pageable and from pinned memory, and on both at once.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/device_engine.hpp"
#include "tuning/tuning.hpp"

namespace warpcipher {

struct TunerSettings {
  std::size_t device_len = std::size_t{256} << 20;  // bytes of text in device memory
  std::size_t least_len = std::size_t{64} << 10;    // bytes of the shortest text
  std::size_t most_len = std::size_t{128} << 20;    // and of the longest, at most
  double seconds = 0.1;                             // texts grow four-fold until a run takes this long
  int repetitions = 5;                              // at least; the median counts
  std::vector<std::string> algorithms;              // empty: all
};

// The latest measurement, and the progress of the whole, from 0 to 1.
struct TunerNews {
  std::string text;
  double done;
};

// Measures `device` and `cpu`. Nothing else should run on the machine meanwhile. Leaves the best policies in use.
// Throws as the engines do.
Tuning measure_tuning(DeviceEngine& device, Engine& cpu, const TunerSettings& settings,
                      const std::function<void(const TunerNews&)>& observe);

}  // namespace warpcipher
