// SPDX-License-Identifier: Apache-2.0
// One block of each message of a batch, encrypted before its text is: E(J0) of GCM, the first tweak of XTS.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::lane_table {

struct FirstBlocks {
  MessageView* views;
  std::uint32_t count;
  const uint4* round_keys;
  std::uint32_t rounds;
  Block* masks;
};

// Encrypts views[i].start under key views[i].key, one message in each lane. With masks: the result goes there, and
// start becomes the next counter (inc32: SP 800-38D, section 6.2). Without: start becomes the result. Pointers are to
// device memory.
void encrypt_first_blocks(const Device& device, Stream stream, TableLayout layout, const FirstBlocks& batch);

}  // namespace warpcipher::cuda::lane_table
