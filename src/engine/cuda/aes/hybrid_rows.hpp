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

// Runs data units of one key as a speculative launch, if SectorKernel::rows was chosen. Also fills in its summary,
// which must be zeros before. If the data units are not sectors the summary is bad, and no text is written.
void start_hybrid_rows(const Device& device, Stream stream, const ColumnView& columns, const Key& key,
                       std::uint32_t rounds, const Speculation& speculation);

}  // namespace warpcipher::cuda::lane_table
