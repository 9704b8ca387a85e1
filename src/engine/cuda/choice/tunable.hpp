// SPDX-License-Identifier: Apache-2.0
// What the choice between kernels asks: what the tuner chose (policies.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda {

enum class Tunable : std::uint8_t {
  lane_table,  // KiB of tables (lane_table/table_layout.hpp)
  ghash,       // of long texts (ghash/tensor.hpp)
  counter,     // of long messages (lane_table/hybrid.hpp)
  blocks,      // of long messages in other modes (lane_table/hybrid.hpp)
};

// The value that was chosen, or an empty one where the default holds.
std::string_view chosen_value(const Device& device, Tunable tunable);

}  // namespace warpcipher::cuda
