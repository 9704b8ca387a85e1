// SPDX-License-Identifier: Apache-2.0
// In a library of its own (CMakeLists.txt): for the one compute capability that it was measured on.
#include "engine/cuda/lane_table/hybrid_packed.cuh"

#include "core/wipe.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

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
  Secret<CounterSource<OneKeySource>> source;
  slice_keys(*source, batch);
  launch(&hybrid_packed_kernel, LaunchShape{device.multiprocessors, block_threads, HybridPolicy::shared_len}, stream,
         *source, CounterParameters{wrap_32, verdicts}, Places(static_cast<std::uint32_t>(most_units)), guess);
}

}  // namespace warpcipher::cuda::lane_table
