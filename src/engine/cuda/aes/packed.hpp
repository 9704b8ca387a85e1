// SPDX-License-Identifier: Apache-2.0
// The kernels of short messages packed into warps (packed.cuh), as the host launches them.
#pragma once

#include <cstdint>

#include "engine/cuda/aes/kernels.hpp"
#include "engine/cuda/aes/source.hpp"
#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::lane_table {

// The parameters that do not depend on the key.
struct PackedParameters {
  std::uint32_t group_log;        // log2 of G
  bool wrap_32;                   // as CounterParameters
  const std::uint32_t* verdicts;  // likewise
};

// Messages of one key of 10 or 14 rounds, by tables_128. CounterForm: not first_word. If `batch` lacks ends, these are
// encrypted and no more; so below.
void launch_packed(const Device& device, Stream stream, const OneKeySource& batch, const PackedParameters& parameters,
                   const Speculation& speculation);

// Messages with a key of 128 bits each, whose round keys the kernel makes, by tables_128. keys: one after another.
void launch_packed(const Device& device, Stream stream, CounterForm form, const MessageList& list,
                   const std::uint8_t* keys, const PackedParameters& parameters, const Speculation& speculation);

// Messages with a key each. CounterForm: not first_word if `batch` lacks ends.
void launch_packed(const Device& device, Stream stream, TableLayout layout, CounterForm form, const BatchSource& batch,
                   const PackedParameters& parameters, const Speculation& speculation);

}  // namespace warpcipher::cuda::lane_table
