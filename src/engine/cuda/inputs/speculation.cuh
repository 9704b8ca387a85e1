// SPDX-License-Identifier: Apache-2.0
// What a kernel that is launched on a guess does first (guess.hpp).
#pragma once

#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda {

// Tells the host; false where the kernel must end, having done nothing. Every thread of the grid asks.
__device__ __forceinline__ bool may_start(const Guess& guess) {
  if (guess.survey == nullptr) return true;
  const Survey survey = *guess.survey;
  if (guess.answer != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    guess.answer->survey = survey;
    __threadfence_system();
    *const_cast<volatile std::uint32_t*>(&guess.answer->is_there) = 1;
  }
  return holds(guess, survey);
}

}  // namespace warpcipher::cuda
