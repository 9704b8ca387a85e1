// SPDX-License-Identifier: Apache-2.0
// The kernels of the lane-table family, as the host launches them. The kernels of each mode are compiled in a file of
// their own.
#pragma once

#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/aes/modes.hpp"
#include "engine/cuda/aes/source.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
struct Algorithm;
class Key;
struct Message;
}  // namespace warpcipher

namespace warpcipher::cuda::lane_table {

// Exactly one source is set. one_key: only for modes that have it, with keys of 10 or 14 rounds, and in the layout
// tables_128; these modes have no `single`.
struct ParallelLaunch {
  const Device& device;
  Stream stream;
  TableLayout layout;
  const SingleSource* single = nullptr;
  const OneKeySource* one_key = nullptr;
  const BatchSource* batch = nullptr;
};

// A batch in a mode that is neither CTR nor GCM. in_place: some messages run in place. only_key: of all messages, or
// nullptr.
void run_tiles(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
               const TextChoice& choice, const BatchSource& batch, bool in_place, const Key* only_key);

// One message of at least a unit, in any parallel mode but XTS; for GCM, its counter mode. start: the IV or the first
// counter. verdict: device memory; if it is 0, zeros are written in place of text. nullptr: the message is good.
void run_one(const Device& device, Stream stream, const TextChoice& choice, const Message& message, const Block& start,
             const std::uint32_t* verdict);

// Mode: one of modes.hpp, with its parameters.
template <class Mode, class Parameters>
void launch_parallel(const ParallelLaunch& run, Parameters parameters);

}  // namespace warpcipher::cuda::lane_table
