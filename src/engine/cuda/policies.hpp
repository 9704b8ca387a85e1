// SPDX-License-Identifier: Apache-2.0
// The choices between compiled kernels that the tuner may make for a device, and the defaults that hold without it,
// each with the figure that chose it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "engine/cuda/device.hpp"
#include "engine/policy.hpp"

namespace warpcipher::cuda {

enum class Tunable : std::uint8_t {
  lane_table,  // KiB of tables (lane_table/form.hpp)
  ghash,       // of long texts (ghash/tensor.hpp)
  counter,     // of long messages (lane_table/mixed.hpp)
  blocks,      // of long messages in other modes (lane_table/mixed_text.hpp)
};

std::vector<Policy> policies(const Device& device);

// An empty value: back to the default.
void choose_policy(int device, std::string_view name, std::string_view value);

// The value that a variable of the environment forces, for tests and measurements; empty when it has none. Throws
// Error{invalid_argument} when it is none of `values`.
std::string_view forced_value(const char* variable, std::initializer_list<std::string_view> values);

// The value that was chosen, or an empty one where the default holds.
std::string_view chosen_value(const Device& device, Tunable tunable);

}  // namespace warpcipher::cuda
