// SPDX-License-Identifier: Apache-2.0
// The bitslice family: DES and triple DES in parallel modes, with 32 blocks in each lane.
#pragma once

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
struct Algorithm;
}

namespace warpcipher::cuda {
class DesSchedules;
}

namespace warpcipher::cuda::bitslice {

// Runs messages of DES or triple DES in a parallel mode. schedules: one for each key. in_place: for some message, in ==
// out.
void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TileList& list, const DesSchedules& schedules, bool in_place);

}  // namespace warpcipher::cuda::bitslice
