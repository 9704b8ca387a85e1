// SPDX-License-Identifier: Apache-2.0
// Environment variables that force a choice, for tests and measurements.
#pragma once

#include <span>
#include <string_view>

namespace warpcipher::cuda {

// The value of a variable; empty if it has none. Throws Error{invalid_argument} if it is not one of `values`.
std::string_view forced_value(const char* variable, std::span<const std::string_view> values);

}  // namespace warpcipher::cuda
