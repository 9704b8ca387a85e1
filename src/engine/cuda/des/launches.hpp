// SPDX-License-Identifier: Apache-2.0
// Serial modes of DES as the engine calls them.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda {
class DesSchedules;
}

namespace warpcipher {
struct Algorithm;
}

namespace warpcipher::cuda::lane_table {

// Messages of one key length, in any mode that is serial (serial.cuh). Pointers are to device memory.
struct SerialDesBatch {
  const MessageView* views;       // `start`: the IV
  const std::uint32_t* order;     // of the views, by length; nullptr: as they are
  const DesSchedules& schedules;  // of messages in that order, or of one key
  std::uint32_t messages;
};

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialDesBatch& batch);

}  // namespace warpcipher::cuda::lane_table

// --- The bitslice family: DES and triple DES in parallel modes, with 32 blocks in each lane.
namespace warpcipher::cuda::bitslice {

// Runs messages of DES or triple DES in a parallel mode. schedules: one for each key. in_place: for some message, in ==
// out.
void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TileList& list, const DesSchedules& schedules, bool in_place);

}  // namespace warpcipher::cuda::bitslice
