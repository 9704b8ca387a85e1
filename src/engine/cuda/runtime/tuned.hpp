// SPDX-License-Identifier: Apache-2.0
// What the tuner chose for each device.
#pragma once

#include <cstdint>

#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda {

// The values of each policy, after `none` (the shipped default holds) in the order of policies.cpp.
enum class TunedLayout : std::uint8_t { none, tables_128, tables_64 };
enum class TunedGhash : std::uint8_t { none, tensor, scalar };
enum class TunedText : std::uint8_t { none, hybrid, tiles };

struct alignas(4) Tuned {
  TunedLayout table_layout = TunedLayout::none;
  TunedGhash ghash = TunedGhash::none;  // of long texts
  TunedText counter = TunedText::none;  // of long texts in counter mode
  TunedText text = TunedText::none;     // of long texts in other modes

  bool operator==(const Tuned&) const = default;
};

// The choices for a device; from any thread.
Tuned tuned_of(const Device& device);

}  // namespace warpcipher::cuda
