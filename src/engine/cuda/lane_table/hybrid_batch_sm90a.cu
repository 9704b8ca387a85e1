// SPDX-License-Identifier: Apache-2.0
// In a library of its own (CMakeLists.txt): for the one compute capability that it was measured on.
#include "engine/cuda/lane_table/hybrid_batch.cuh"

#include "core/wipe.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

bool choose_hybrid_batch(const Device& device, TableLayout layout, std::uint64_t tiles) {
  const std::string_view forced = forced_counter();
  if (!has_hybrid(device) || layout != TableLayout::tables_128 || forced == "tiles") return false;
  if (forced == "mixed") return true;
  return chosen_value(device, Tunable::counter) != "tiles" &&
         tiles >= least_hybrid_tiles_of_multiprocessor * device.multiprocessors;
}

void run_hybrid_batch(const Device& device, Stream stream, const OneKeySource& batch, bool wrap_32,
                      const std::uint32_t* verdicts, const Guess& guess) {
  using Key = OnlyKey<CounterSource<OneKeySource>>;
  Secret<CounterSource<OneKeySource>> source;
  slice_keys(*source, batch);
  launch(&hybrid_batch_kernel<Key>, LaunchShape{device.multiprocessors, block_threads, Key::shared_len}, stream,
         *source, CounterParameters{wrap_32, verdicts}, guess);
}

void run_hybrid_batch(const Device& device, Stream stream, const BatchSource& batch, bool wrap_32,
                      const std::uint32_t* verdicts, const Guess& guess) {
  launch(&hybrid_batch_kernel<WarpKey>, LaunchShape{device.multiprocessors, block_threads, WarpKey::shared_len}, stream,
         batch, CounterParameters{wrap_32, verdicts}, guess);
}

}  // namespace warpcipher::cuda::lane_table
