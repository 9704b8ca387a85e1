// SPDX-License-Identifier: Apache-2.0
// The first step of a kernel of a speculative launch (speculation.hpp).
#pragma once

#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda {

// Fills the mailbox. False: the kernel must end without doing anything. Every thread of the grid calls it.
__device__ __forceinline__ bool may_start(const Speculation& speculation) {
  if (speculation.summary == nullptr) return true;
  const BatchSummary summary = *speculation.summary;
  if (speculation.mailbox != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    speculation.mailbox->summary = summary;
    __threadfence_system();
    *const_cast<volatile std::uint32_t*>(&speculation.mailbox->is_there) = 1;
  }
  return holds(speculation, summary);
}

}  // namespace warpcipher::cuda
