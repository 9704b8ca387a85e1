// SPDX-License-Identifier: Apache-2.0
// Serial modes of DES as the engine calls them.
#pragma once

#include <cstdint>

#include "engine/cuda/launch.hpp"
#include "engine/cuda/message_view.cuh"

namespace warpcipher::cuda::lane_table {

inline constexpr std::uint32_t serial_des_rounds = 48;  // that a schedule has room for

// Messages of one key length, sorted by length, in any mode that is serial (serial.cuh). Pointers are to device memory.
// Schedules lie as a warp reads them: round r of the 32 messages of warp g starts at schedules[32 (48 g + r)].
struct SerialDesBatch {
  const MessageView* views;  // `start`: the IV
  const uint2* schedules;
  std::uint32_t messages;
  std::uint32_t rounds;
};

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialDesBatch& batch);

}  // namespace warpcipher::cuda::lane_table
