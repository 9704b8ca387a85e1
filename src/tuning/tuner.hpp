// SPDX-License-Identifier: Apache-2.0
// Measures on this machine what choices depend on: each policy of each device, in device memory; the policies of the
// pipeline; and for `auto` what every algorithm costs on the CPU, through a device from pageable and from page-locked
// memory, and on both at once.
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
  double seconds = 0.1;                             // texts grow four-fold until a run takes as long
  int repetitions = 5;                              // at least, of which the median counts
  std::vector<std::string> algorithms;              // empty: all
};

// What has been found, and how much of the whole is done, from 0 to 1.
struct TunerNews {
  std::string text;
  double done;
};

// Measures `device` against `cpu`; takes the machine for itself meanwhile. Policies are left as they were found best.
// Throws as the engines do.
Tuning measure_tuning(DeviceEngine& device, Engine& cpu, const TunerSettings& settings,
                      const std::function<void(const TunerNews&)>& observe);

}  // namespace warpcipher
