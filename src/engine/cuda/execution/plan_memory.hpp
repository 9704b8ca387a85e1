// SPDX-License-Identifier: Apache-2.0
// The device memory that the summary of columns fills in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/inputs/summary.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

class PlanMemory {
 public:
  PlanMemory(std::uint32_t count, bool is_aead, BatchSummary* summary, Stream stream) {
    const auto sums = memory_.reserve_on_device<Sums>((std::size_t{count} + messages_of_sum - 1) / messages_of_sum);
    const auto views = memory_.reserve_on_device<MessageView>(count);
    const auto first_tile = memory_.reserve_on_device<std::uint64_t>(std::size_t{count} + 1);
    const auto hash_views = memory_.reserve_on_device<HashView>(is_aead ? count : 0);
    const auto first_chunk = memory_.reserve_on_device<std::uint64_t>(is_aead ? std::size_t{count} + 1 : 0);
    memory_.allocate(stream, Wiping::needless);
    buffers_ = {summary,
                memory_.device(sums),
                memory_.device(views),
                is_aead ? memory_.device(hash_views) : nullptr,
                memory_.device(first_tile),
                is_aead ? memory_.device(first_chunk) : nullptr};
  }

  const SummaryBuffers& buffers() const { return buffers_; }

 private:
  Upload memory_;
  SummaryBuffers buffers_{};
};

}  // namespace warpcipher::cuda
