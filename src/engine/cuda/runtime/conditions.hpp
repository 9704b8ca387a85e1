// SPDX-License-Identifier: Apache-2.0
// What every choice of kernels depends on, in addition to the batch.
#pragma once

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/cuda/runtime/overrides.hpp"
#include "engine/cuda/runtime/tuned.hpp"

namespace warpcipher::cuda {

struct Conditions {
  const Device& device;
  Overrides overrides{};
  Tuned tuned{};
};

// The conditions of a launch that begins now. Throws as overrides().
inline Conditions conditions_of(const Device& device) { return {device, overrides(), tuned_of(device)}; }

}  // namespace warpcipher::cuda
