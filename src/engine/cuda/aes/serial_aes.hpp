// SPDX-License-Identifier: Apache-2.0
// Serial modes of AES as the engine and its columnar batches call them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda::lane_table {

// Messages of one key length, in any mode that is serial (serial.cuh). Pointers are to device memory.
struct SerialBatch {
  const MessageView* views;    // `start`: the IV
  const std::uint32_t* order;  // of the views, by length; nullptr: as they are
  const uint4* round_keys;     // fifteen a key, for encryption
  std::uint32_t messages;
  std::uint32_t rounds;
};

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialChoice& choice,
                      const SerialBatch& batch);

}  // namespace warpcipher::cuda::lane_table
