// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/hybrid.hpp"

#include "core/wipe.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/lane_table/hybrid_launch.hpp"
#include "engine/cuda/runtime/environment.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Source>
Secret<CounterSource<Source>> with_slices(const Source& source) {
  Secret<CounterSource<Source>> sliced;
  slice_keys(*sliced, source);
  return sliced;
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
  launch_hybrid_counter(device, stream, *with_slices(message),
                        CounterParameters{wrap_32, verdicts, device.multiprocessors});
}

bool choose_hybrid_batch(const Device& device, TableLayout layout, std::uint64_t tiles) {
  const std::string_view forced = forced_counter();
  if (!has_hybrid(device) || layout != TableLayout::tables_128 || forced == "tiles") return false;
  if (forced == "mixed") return true;
  return chosen_value(device, Tunable::counter) != "tiles" &&
         tiles >= least_hybrid_tiles_of_multiprocessor * device.multiprocessors;
}

void run_hybrid_batch(const Device& device, Stream stream, const OneKeySource& batch, bool wrap_32,
                      const std::uint32_t* verdicts, const Guess& guess) {
  launch_hybrid_batch(device, stream, *with_slices(batch), CounterParameters{wrap_32, verdicts}, guess);
}

void run_hybrid_batch(const Device& device, Stream stream, const BatchSource& batch, bool wrap_32,
                      const std::uint32_t* verdicts, const Guess& guess) {
  launch_hybrid_batch(device, stream, batch, CounterParameters{wrap_32, verdicts}, guess);
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

void run_hybrid_packed(const Device& device, Stream stream, const OneKeySource& batch, std::uint64_t most_units,
                       bool wrap_32, const std::uint32_t* verdicts, const Guess& guess) {
  launch_hybrid_packed(device, stream, *with_slices(batch), CounterParameters{wrap_32, verdicts},
                       Places(static_cast<std::uint32_t>(most_units)), guess);
}

}  // namespace warpcipher::cuda::lane_table
