// SPDX-License-Identifier: Apache-2.0
// AES-CCM (SP 800-38C), a message a lane. Each block of text is two of AES that do not wait for each other: one of the
// MAC's chain, one of key stream.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/hash_view.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::lane_table {

// All pointers are to device memory.
struct CcmBatch {
  const MessageView* views;  // start: the counter block of the text's first block
  const HashView* hash_views;
  const Block* masks;          // of each message: block 0 of its key stream
  const std::uint32_t* order;  // nullptr: as they lie
  const uint4* round_keys;     // most_round_keys for each key
  std::uint32_t rounds;
  std::uint32_t messages;
  bool encrypting;
};

// Text and tags. verdicts: decryption that checks tags; verdicts[i] becomes 1 if that of message i matches, else 0, and
// its text zeros. Without them tags are written.
void run_ccm(const Device& device, Stream stream, TableLayout layout, const CcmBatch& batch, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::lane_table
