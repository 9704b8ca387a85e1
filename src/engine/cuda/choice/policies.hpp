// SPDX-License-Identifier: Apache-2.0
// The choices between compiled kernels that the tuner may make for a device, and the defaults that hold without it,
// each with the figure that chose it.
#pragma once

#include <string_view>
#include <vector>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/policy.hpp"

namespace warpcipher::cuda {

// Throws as overrides().
std::vector<Policy> policies(const Device& device);

// An empty value: back to the default. Changes nothing where the name or value is unknown, or the device cannot run it.
void choose_policy(const Device& device, std::string_view name, std::string_view value);

}  // namespace warpcipher::cuda
