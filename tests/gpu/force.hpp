// SPDX-License-Identifier: Apache-2.0
// Forces a choice of kernels through the environment of this process.
#pragma once

#include <cstdlib>

#include "engine/cuda/runtime/overrides.hpp"

namespace conformance {

// nullptr: no longer.
inline void force(const char* variable, const char* value) {
  value != nullptr ? setenv(variable, value, 1) : unsetenv(variable);
  warpcipher::cuda::reread_overrides();
}

}  // namespace conformance
