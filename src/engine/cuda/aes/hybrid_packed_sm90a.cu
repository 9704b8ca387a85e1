// SPDX-License-Identifier: Apache-2.0
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/hybrid_packed.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

void launch_hybrid_packed(const Device& device, Stream stream, const CounterSource<OneKeySource>& batch,
                          const CounterParameters& parameters, const PackedLayout& layout,
                          const Speculation& speculation) {
  launch(&hybrid_packed_kernel, LaunchConfiguration{device.multiprocessors, block_threads, HybridPolicy::shared_len},
         stream, batch, parameters, layout, speculation);
}

}  // namespace warpcipher::cuda::lane_table
