// SPDX-License-Identifier: Apache-2.0
// A choice between ways to compute the same, that the tuner (src/tuning/tuner.hpp) may make by measurement. Never
// changes a result.
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
  std::string_view algorithm;            // whose rate tells which value is best
};

}  // namespace warpcipher
