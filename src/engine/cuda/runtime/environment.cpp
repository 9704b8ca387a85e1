// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.hpp"

namespace warpcipher::cuda {

std::string_view forced_value(const char* variable, std::span<const std::string_view> values) {
  const char* const value = std::getenv(variable);
  const std::string_view forced = value == nullptr ? std::string_view() : value;
  if (forced.empty() || std::find(values.begin(), values.end(), forced) != values.end()) return forced;
  std::string expected;
  for (const std::string_view each : values) expected += (expected.empty() ? "" : ", ") + std::string(each);
  throw Error(Status::invalid_argument, std::string(variable) + " is '" + std::string(forced.substr(0, 16)) +
                                            "': expected " + expected + ", or no value");
}

}  // namespace warpcipher::cuda
