// SPDX-License-Identifier: Apache-2.0
// The choices between compiled kernels that the tuner may make for a device, and the defaults without a tuner, each
// with the measurement behind it.
#pragma once

#include <string_view>
#include <vector>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/policy.hpp"

namespace warpcipher::cuda {

// Throws as overrides().
std::vector<Policy> policies(const Device& device);

// An empty value restores the default. An unknown name or value, or a value that the device cannot run, changes
// nothing.
void choose_policy(const Device& device, std::string_view name, std::string_view value);

}  // namespace warpcipher::cuda
