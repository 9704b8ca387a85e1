// SPDX-License-Identifier: Apache-2.0
// The bitslice family as the execution of a batch calls it: DES and triple DES in the modes that run in
// parallel, 32 blocks a lane.
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

// Messages of DES or triple DES in a parallel mode. schedules: of keys. in_place: some `in` is its
// `out`.
void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TileList& list, const DesSchedules& schedules, bool in_place);

}  // namespace warpcipher::cuda::bitslice
