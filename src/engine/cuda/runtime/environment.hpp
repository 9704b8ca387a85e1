// SPDX-License-Identifier: Apache-2.0
// Variables of the environment that force one of several ways, for tests and measurements.
#pragma once

#include <initializer_list>
#include <string_view>

namespace warpcipher::cuda {

// The value of a variable; empty when it has none.
std::string_view environment_value(const char* variable);

// The same. Throws Error{invalid_argument} when the value is not one of `values`.
std::string_view forced_value(const char* variable, std::initializer_list<std::string_view> values);

}  // namespace warpcipher::cuda
