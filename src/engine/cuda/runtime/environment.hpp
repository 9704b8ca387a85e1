// SPDX-License-Identifier: Apache-2.0
// Variables of the environment that force one of several ways, for tests and measurements.
#pragma once

#include <span>
#include <string_view>

namespace warpcipher::cuda {

// The value of a variable; empty when it has none. Throws Error{invalid_argument} when it is not one of `values`.
std::string_view forced_value(const char* variable, std::span<const std::string_view> values);

}  // namespace warpcipher::cuda
