// SPDX-License-Identifier: Apache-2.0
// The counter mode of a batch, by the kernel that is chosen for it (kernels.hpp).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher {
class Key;
}

namespace warpcipher::cuda::lane_table {

// Messages of one key length. Pointers are to device memory.
struct CounterBatch {
  const MessageView* views;  // `start`: the first counter
  const std::uint64_t* first_tile;
  std::uint64_t tiles;
  std::uint64_t units;       // of all messages
  std::uint64_t most_units;  // of one
  std::uint32_t messages;
  std::uint32_t rounds;
  const uint4* round_keys;   // most_round_keys for each key; KeySource::bytes: not read
  const std::uint8_t* keys;  // as given, one after another; nullptr: not on the device
  const Key* only_key;       // of all messages, or nullptr
  bool is_aligned;           // all texts lie at multiples of 16
  bool lacks_ends;           // as TileList
  std::uint64_t end_units;   // of the ends
};

// verdicts: as CounterParameters. choice: for the form.
void run_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, const CounterChoice& choice,
                       CounterForm form, const std::uint32_t* verdicts);

// The same before the host knows the batch: tiles and units are those of messages of one length. Fills in the rest of
// the speculation. False: the kernel for such a batch does not check the assumption; nothing has been launched. Ends
// that tiles lack are left: run_ends() takes them.
bool start_counter_batch(const Device& device, Stream stream, const CounterBatch& batch, CounterChoice choice,
                         CounterForm form, Speculation& speculation);

// What a batch that was started with `choice` lacks, if anything.
void run_ends(const Device& device, Stream stream, const CounterBatch& batch, const CounterChoice& choice,
              CounterForm form);

}  // namespace warpcipher::cuda::lane_table
