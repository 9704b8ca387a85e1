// SPDX-License-Identifier: Apache-2.0
// The bitslice family as the engine calls it: DES and triple DES in the modes that run in parallel, 32 blocks a lane.
#pragma once

#include "engine/cuda/launch.hpp"

namespace warpcipher::cuda::bitslice {

// A group of DES or triple DES messages in a parallel mode.
void run_parallel(const GroupRun& run);

}  // namespace warpcipher::cuda::bitslice
