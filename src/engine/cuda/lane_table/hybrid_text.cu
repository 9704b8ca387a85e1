// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/hybrid_text.hpp"

#include <algorithm>

#include "core/wipe.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/lane_table/hybrid_launch.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/environment.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Mode, class Source, class Parameters>
void run_text(const Device& device, Stream stream, const Source& source, const Parameters& parameters) {
  Secret<TextSource<Source>> sliced;
  slice_keys(*sliced, source);
  launch_hybrid_text<Mode>(device, stream, *sliced, parameters);
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
      return inverse ? run_text<EcbDecryption>(device, stream, message, NoParameters{})
                     : run_text<EcbEncryption>(device, stream, message, NoParameters{});
    case Mode::cbc:
      return run_text<CbcDecryption>(device, stream, message, ChainParameters{chains});
    case Mode::cfb:
      return run_text<CfbDecryption>(device, stream, message, ChainParameters{chains});
    default:
      throw_failure("this mode has no hybrid kernel for a message");
  }
}

void run_hybrid_xts(const Device& device, Stream stream, bool inverse, const OneKeySource& batch) {
  const StreamBuffer units(batch.tiles * sizeof(MessageView), stream);
  auto* const views = reinterpret_cast<MessageView*>(units.data());
  cut_units(device, stream, batch, views);
  Secret<UnitSource> source;
  source->views = views;
  source->tiles = batch.tiles;
  source->rounds = batch.rounds;
  std::copy_n(batch.schedule, most_schedule_words, source->schedule);
  inverse ? run_text<XtsMode<true>>(device, stream, *source, NoParameters{})
          : run_text<XtsMode<false>>(device, stream, *source, NoParameters{});
}

}  // namespace warpcipher::cuda::lane_table
