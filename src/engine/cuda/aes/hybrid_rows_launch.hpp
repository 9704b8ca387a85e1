// SPDX-License-Identifier: Apache-2.0
// The kernels of sectors (hybrid_rows_sm90a.cu) as the host launches them, and their parameters.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/aes/hybrid_source.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::lane_table {

// The text of sectors that the summary has found.
struct RowSource {
  MessageView view;  // its in and out are the buffers
  Speculation speculation;
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];

  __device__ std::uint32_t count_tiles() const;
  template <class Mode>
  __device__ TileView find(std::uint32_t number) const;
};

struct RowTweaks {
  const uint4* of_text;  // the first tweak of each row

  // The lane's tweak in row `row` of the text.
  __device__ Block at(std::uint64_t row) const;
};

struct RowPlanning {
  ColumnView columns;
  BatchSummary* summary;
  Block* tweaks;  // one for each row that fits in the buffers
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];  // of the tweak key
};

// Checks that the columns are sectors, and computes the tweaks of their rows.
void plan_rows(const Device& device, Stream stream, const RowPlanning& planning);

void launch_hybrid_rows(const Device& device, Stream stream, bool inverse, const TextSource<RowSource>& text,
                        const RowTweaks& tweaks);

}  // namespace warpcipher::cuda::lane_table
