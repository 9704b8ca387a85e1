// SPDX-License-Identifier: Apache-2.0
// How a warp finds the message of its tile.
#pragma once

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda {

// One tile: `units` units from first_unit of a message. `message` counts within the group.
struct TileView {
  std::uint64_t number;
  std::uint64_t first_unit;
  std::uint32_t units;
  std::uint32_t message;
  const MessageView& view;
  Text text;
};

// The position of a tile's message if all messages of the group had the same length.
__device__ __forceinline__ std::uint32_t estimate_message(std::uint32_t count, std::uint64_t tiles,
                                                          std::uint64_t tile) {
  const float position = static_cast<float>(tile) * (static_cast<float>(count) / static_cast<float>(tiles));
  const auto speculation = static_cast<std::uint32_t>(position);
  return speculation < count ? speculation : count - 1;
}

// The largest position with first_tile[position] <= tile: the message that contains the tile. The lanes of a warp probe
// 32 positions at once: first around the estimate, then evenly over the rest. So 65,536 messages of any lengths
// take five steps, and messages of one length take one step.
__device__ __forceinline__ std::uint32_t find_message(const std::uint64_t* first_tile, std::uint32_t count,
                                                      std::uint64_t tiles, std::uint64_t tile) {
  std::uint32_t low = 0;
  std::uint32_t high = count;
  std::uint32_t step = 1;
  const std::uint32_t speculation = estimate_message(count, tiles, tile);
  std::uint32_t start = speculation < warp_len / 2 ? 0 : speculation - warp_len / 2;
  while (high - low > 1) {
    const std::uint32_t probe = start + lane_index() * step;
    const bool reached = probe < high && __ldg(first_tile + probe) <= tile;
    const auto steps = static_cast<std::uint32_t>(__popc(__ballot_sync(0xffffffffu, reached)));
    if (steps != 0) low = start + (steps - 1) * step;
    if (steps != warp_len && start + steps * step < high) high = start + steps * step;
    step = (high - low + warp_len - 1) / warp_len;
    start = low;
  }
  return low;
}

// The same for lanes that look for different tiles: in growing steps away from the estimate until the message lies
// between two probes, then by bisection.
__device__ __forceinline__ std::uint32_t find_message_alone(const std::uint64_t* first_tile, std::uint32_t count,
                                                            std::uint64_t tiles, std::uint64_t tile) {
  std::uint32_t low = 0;
  std::uint32_t high = count;
  std::uint32_t probe = estimate_message(count, tiles, tile);
  for (std::uint32_t reach = 1; high - low > 1; reach *= 2) {
    const bool reached = __ldg(first_tile + probe) <= tile;
    if (reached) {
      low = probe;
    } else {
      high = probe;
    }
    const std::uint32_t middle = low + (high - low) / 2;
    probe = reach == 0 || high - low <= reach ? middle : reached ? low + reach : high - reach;
  }
  return low;
}

__device__ __forceinline__ std::uint32_t cut_to_32_bits(std::uint64_t x) {
  return x > 0xffffffffu ? 0xffffffffu : static_cast<std::uint32_t>(x);
}

// unit_len: bytes of a unit. number_in_message: of the tile, from 0. all: the units that tiles have of the message.
// lead (below units_of_tile): the tiles of the message begin that many units earlier. So the first tile is shorter, and
// the last has the rest, up to twice as many units.
__device__ __forceinline__ TileView make_tile(const MessageView& view, std::uint32_t message, std::uint64_t number,
                                              std::uint64_t number_in_message, std::uint32_t units_of_tile,
                                              std::uint32_t unit_len, std::uint64_t all, std::uint32_t lead) {
  const std::uint64_t end = (number_in_message + 1) * units_of_tile;
  const std::uint64_t first_unit = number_in_message == 0 ? 0 : end - units_of_tile - lead;
  const std::uint64_t units = (end >= all ? all : end - lead) - first_unit;
  const std::uint64_t offset = first_unit * unit_len;
  const std::uint8_t* in = global(view.in) + offset;
  std::uint8_t* out = global(view.out) + offset;
  const bool aligned = ((reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out)) & 15) == 0;
  return {number,
          first_unit,
          static_cast<std::uint32_t>(units),
          message,
          view,
          {in, out, cut_to_32_bits(view.in_len > offset ? view.in_len - offset : 0),
           cut_to_32_bits(view.out_len - offset), view.pad, aligned}};
}

// The same where tiles have all of the message, and no lead.
__device__ __forceinline__ TileView make_tile(const MessageView& view, std::uint32_t message, std::uint64_t number,
                                              std::uint64_t number_in_message, std::uint32_t units_of_tile,
                                              std::uint32_t unit_len) {
  return make_tile(view, message, number, number_in_message, units_of_tile, unit_len, view.units, 0);
}

// The first step of a kernel of a speculative launch (speculation.hpp).

// Fills the mailbox. False: the kernel must end without doing anything. Every thread of the grid calls it.
__device__ __forceinline__ bool may_start(const Speculation& speculation) {
  if (speculation.summary == nullptr) return true;
  const BatchSummary summary = *speculation.summary;
  if (speculation.mailbox != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    speculation.mailbox->summary = summary;
    __threadfence_system();
    *const_cast<volatile std::uint32_t*>(&speculation.mailbox->is_there) = 1;
  }
  return holds(speculation, summary);
}

}  // namespace warpcipher::cuda
