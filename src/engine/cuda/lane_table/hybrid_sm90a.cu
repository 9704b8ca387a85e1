// SPDX-License-Identifier: Apache-2.0
// In a library of its own (CMakeLists.txt): for the one compute capability that it was measured on.
#include "engine/cuda/lane_table/hybrid_counter.cuh"

#include "core/wipe.hpp"
#include "engine/cuda/choice/tunable.hpp"
#include "engine/cuda/lane_table/hybrid.hpp"
#include "engine/cuda/runtime/environment.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {
std::string_view forced_counter() {
  return forced_value("WARPCIPHER_COUNTER", {"packed", "together", "tiles", "mixed"});
}

bool has_hybrid(const Device& device) {
  return device.major == 9 && device.minor == 0 && device.multiprocessors > 1 &&
         device.shared_len >= HybridPolicy::shared_len;
}

bool choose_hybrid(const Device& device, TableLayout layout, const SingleSource& message) {
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

void run_hybrid(const Device& device, Stream stream, const SingleSource& message, bool wrap_32,
                const std::uint32_t* verdicts) {
  Secret<CounterSource<SingleSource>> source;
  slice_keys(*source, message);
  launch(&hybrid_counter_kernel, LaunchShape{device.multiprocessors, block_threads, HybridPolicy::shared_len}, stream,
         *source, CounterParameters{wrap_32, verdicts, device.multiprocessors});
}

}  // namespace warpcipher::cuda::lane_table
