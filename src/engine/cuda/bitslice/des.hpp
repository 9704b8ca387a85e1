// SPDX-License-Identifier: Apache-2.0
// The bitslice family as the engine and its columnar batches call it: DES and triple DES in the modes that run in
// parallel, 32 blocks a lane.
#pragma once

#include "engine/cuda/gpu.hpp"
#include "engine/cuda/message_view.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
struct Algorithm;
}

namespace warpcipher::cuda {
class DesSchedules;
struct GroupRun;
}  // namespace warpcipher::cuda

namespace warpcipher::cuda::bitslice {

// A group of DES or triple DES messages in a parallel mode.
void run_parallel(const GroupRun& run);

// The same of views in device memory, cut into tiles of 256 units. schedules: of keys. in_place: some `in` is its
// `out`.
void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TileList& list, const DesSchedules& schedules, bool in_place);

}  // namespace warpcipher::cuda::bitslice
