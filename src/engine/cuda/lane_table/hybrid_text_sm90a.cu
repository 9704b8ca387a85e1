// SPDX-License-Identifier: Apache-2.0
// In a library of its own (CMakeLists.txt): for the one compute capability that it was measured on.
#include "engine/cuda/lane_table/hybrid_text.cuh"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/lane_table/hybrid_text.hpp"
#include "engine/cuda/runtime/environment.hpp"
#include "engine/cuda/runtime/launch.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// Makes a data unit of each tile of `list`.
__global__ void cut_units_kernel(const __grid_constant__ TileList list, MessageView* units) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < list.tiles; i += stride) {
    const std::uint32_t message = find_message_alone(list.first_tile, list.messages, list.tiles, i);
    const MessageView& view = list.views[message];
    const std::uint64_t first = tile_units * (i - list.first_tile[message]);
    MessageView unit = view;
    unit.in += 16 * first;
    unit.out += 16 * first;
    unit.units = view.units - first < tile_units ? view.units - first : tile_units;
    unit.in_len = first + unit.units == view.units ? view.in_len - 16 * first : 16 * unit.units;
    unit.out_len = unit.in_len;
    unit.start = first_tweak(list, i, message);
    units[i] = unit;
  }
}

template <class Mode, class Source>
void launch_hybrid(const Device& device, Stream stream, const Source& source,
                   const typename Mode::Parameters& parameters) {
  Secret<TextSource<Source>> sliced;
  slice_keys(*sliced, source);
  launch(&hybrid_text_kernel<Mode, Source>,
         LaunchShape{device.multiprocessors, block_threads, HybridPolicy::shared_len}, stream, *sliced, parameters);
}

}  // namespace

bool choose_hybrid_text(const Device& device, TableLayout layout, std::uint64_t tiles,
                        std::uint64_t least_of_multiprocessor) {
  const std::string_view forced = forced_value("WARPCIPHER_BLOCKS", {"mixed", "tiles"});
  if (!has_hybrid(device) || layout != TableLayout::tables_128 || forced == "tiles") return false;
  if (forced == "mixed") return true;
  return chosen_value(device, Tunable::blocks) != "tiles" && tiles >= least_of_multiprocessor * device.multiprocessors;
}

void run_hybrid_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                     const Block* chains) {
  switch (mode) {
    case Mode::ecb:
      return inverse ? launch_hybrid<EcbDecryption>(device, stream, message, {})
                     : launch_hybrid<EcbEncryption>(device, stream, message, {});
    case Mode::cbc:
      return launch_hybrid<CbcDecryption>(device, stream, message, {chains});
    case Mode::cfb:
      return launch_hybrid<CfbDecryption>(device, stream, message, {chains});
    default:
      throw_failure("this mode has no kernel of two kinds of warps for a message");
  }
}

void run_hybrid_xts(const Device& device, Stream stream, bool inverse, const OneKeySource& batch) {
  const StreamBuffer units(batch.tiles * sizeof(MessageView), stream);
  auto* const views = reinterpret_cast<MessageView*>(units.data());
  launch(&cut_units_kernel, shape_of_lanes(device, batch.tiles, 256, 8), stream, batch, views);
  Secret<UnitSource> source;
  source->views = views;
  source->tiles = batch.tiles;
  source->rounds = batch.rounds;
  std::copy_n(batch.schedule, most_schedule_words, source->schedule);
  inverse ? launch_hybrid<XtsMode<true>>(device, stream, *source, {})
          : launch_hybrid<XtsMode<false>>(device, stream, *source, {});
}

}  // namespace warpcipher::cuda::lane_table
