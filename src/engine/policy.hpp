// SPDX-License-Identifier: Apache-2.0
// A choice between ways to compute the same result. The tuner (src/tuning/tuner.hpp) may make it by measurement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warpcipher {

struct Policy {
  std::string_view name;
  std::vector<std::string_view> values;  // that can run here, the shipped default first
  std::string_view value;                // in use
  std::string reason;                    // why that one
  std::string_view algorithm;            // the best value is the one with which it is fastest
};

}  // namespace warpcipher
