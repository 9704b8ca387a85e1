// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/hybrid.hpp"

#include <algorithm>

#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/lane_table/hybrid_launch.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/environment.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Mode, class Source, class Parameters>
void run_text(const Device& device, Stream stream, const Source& source, const Parameters& parameters) {
  launch_hybrid_text<Mode>(device, stream, *slice_keys<TextSource<Source>>(source), parameters);
}

}  // namespace

std::string_view forced_counter() {
  return forced_value("WARPCIPHER_COUNTER", {"packed", "together", "tiles", "mixed"});
}

bool has_hybrid(const Device& device) {
  return device.major == 9 && device.minor == 0 && device.multiprocessors > 1 &&
         device.shared_len >= HybridPolicy::shared_len;
}

bool choose_hybrid_counter(const Device& device, TableLayout layout, const SingleSource& message) {
  const auto addresses =
      reinterpret_cast<std::uintptr_t>(message.view.in) | reinterpret_cast<std::uintptr_t>(message.view.out);
  std::string_view forced = forced_counter();
  if (!has_hybrid(device) || layout != TableLayout::tables_128 || addresses % 16 != 0 || message.tiles < 3)
    return false;
  const bool is_forced = forced == "mixed";
  if (forced.empty()) forced = chosen_value(device, Tunable::counter);
  if (!forced.empty() && forced != "mixed") return false;
  return is_forced || message.tiles >= least_hybrid_tiles_of_multiprocessor * device.multiprocessors;
}

void run_hybrid_counter(const Device& device, Stream stream, const SingleSource& message, bool wrap_32,
                        const std::uint32_t* verdicts) {
  launch_hybrid_counter(device, stream, *slice_keys<CounterSource<SingleSource>>(message),
                        CounterParameters{wrap_32, verdicts, device.multiprocessors});
}

bool choose_hybrid_batch(const Device& device, TableLayout layout, std::uint64_t tiles) {
  const std::string_view forced = forced_counter();
  if (!has_hybrid(device) || layout != TableLayout::tables_128 || forced == "tiles") return false;
  if (forced == "mixed") return true;
  return chosen_value(device, Tunable::counter) != "tiles" &&
         tiles >= least_hybrid_tiles_of_multiprocessor * device.multiprocessors;
}

bool choose_hybrid_packed(const Device& device, TableLayout layout, std::uint32_t messages, std::uint64_t units,
                          std::uint64_t most_units) {
  if (!has_hybrid(device) || layout != TableLayout::tables_128 || units == 0 ||
      most_units > most_units_of_hybrid_packed)
    return false;
  const std::string_view forced = forced_counter();
  if (!forced.empty()) return forced == "together";
  const std::uint64_t tiles = Places(static_cast<std::uint32_t>(most_units)).tiles(messages);
  return chosen_value(device, Tunable::counter) != "tiles" && units == most_units * messages &&
         4 * units >= 3 * tile_units * tiles && tiles >= least_hybrid_tiles_of_multiprocessor * device.multiprocessors;
}

bool choose_hybrid_text(const Device& device, TableLayout layout, std::uint64_t tiles,
                        std::uint64_t least_of_multiprocessor) {
  const std::string_view forced = forced_value("WARPCIPHER_BLOCKS", {"mixed", "tiles"});
  if (!has_hybrid(device) || layout != TableLayout::tables_128 || forced == "tiles") return false;
  if (forced == "mixed") return true;
  return chosen_value(device, Tunable::blocks) != "tiles" && tiles >= least_of_multiprocessor * device.multiprocessors;
}

void run_hybrid_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                     const Block* saved_ciphertext) {
  switch (mode) {
    case Mode::ecb:
      return inverse ? run_text<EcbDecryption>(device, stream, message, NoParameters{})
                     : run_text<EcbEncryption>(device, stream, message, NoParameters{});
    case Mode::cbc:
      return run_text<CbcDecryption>(device, stream, message, ChainParameters{saved_ciphertext});
    case Mode::cfb:
      return run_text<CfbDecryption>(device, stream, message, ChainParameters{saved_ciphertext});
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
