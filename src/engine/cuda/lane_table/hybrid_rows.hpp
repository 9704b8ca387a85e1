// SPDX-License-Identifier: Apache-2.0
// Sectors: data units of XTS of one length and one key that follow each other, as one text (hybrid_rows_sm90a.cu).
#pragma once

#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher {
class Key;
}

namespace warpcipher::cuda::lane_table {

// Whether data units of one key may be sectors for this kernel, as far as their buffers say: a multiple of 512 bytes
// each, no longer than a tile, and enough of them, on a device that has the kernel.
bool choose_hybrid_rows(const Device& device, const ColumnView& columns);

// Runs them as a speculative launch. Fills in its summary too, which must hold zeros: bad where the data units are no
// sectors, and then no text is written.
void start_hybrid_rows(const Device& device, Stream stream, const ColumnView& columns, const Key& key,
                       std::uint32_t rounds, const Speculation& speculation);

}  // namespace warpcipher::cuda::lane_table
