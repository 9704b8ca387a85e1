// SPDX-License-Identifier: Apache-2.0
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/hybrid_counter.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

template <class Mode>
void launch_hybrid_counter(const Device& device, Stream stream, const CounterSource<SingleSource>& message,
                           const CounterParameters& parameters) {
  launch(is_aligned(message.view) ? &hybrid_counter_kernel<Mode, true> : &hybrid_counter_kernel<Mode, false>,
         LaunchConfiguration{device.multiprocessors, block_threads, HybridPolicy::shared_len}, stream, message,
         parameters);
}

template void launch_hybrid_counter<CounterMode>(const Device&, Stream, const CounterSource<SingleSource>&,
                                                 const CounterParameters&);
template void launch_hybrid_counter<KeyStreamMode>(const Device&, Stream, const CounterSource<SingleSource>&,
                                                   const CounterParameters&);

}  // namespace warpcipher::cuda::lane_table
