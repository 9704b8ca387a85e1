// SPDX-License-Identifier: Apache-2.0
// Messages of a serial mode in the order of their length, so that the lanes of a warp end together and the longest
// begin first. The lengths of a class differ by less than a sixty-fourth; messages of a class are in any order. A finer
// order would gain nothing.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

inline constexpr std::uint32_t length_classes = 4096;

// Fills order[0] to order[messages - 1] with the numbers of views, those of most units first. places: length_classes
// zeros.
void order_by_length(const Device& device, Stream stream, const MessageView* views, std::uint32_t messages,
                     std::uint32_t* places, std::uint32_t* order);

}  // namespace warpcipher::cuda
