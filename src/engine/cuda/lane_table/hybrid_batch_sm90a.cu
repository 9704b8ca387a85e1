// SPDX-License-Identifier: Apache-2.0
// In a library of its own (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/lane_table/hybrid_batch.cuh"
#include "engine/cuda/lane_table/hybrid_launch.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Key>
void launch_kernel(const Device& device, Stream stream, const typename Key::Source& source,
                   const CounterParameters& parameters, const Speculation& speculation) {
  launch(&hybrid_batch_kernel<Key>, LaunchShape{device.multiprocessors, block_threads, Key::shared_len}, stream, source,
         parameters, speculation);
}

}  // namespace

void launch_hybrid_batch(const Device& device, Stream stream, const CounterSource<OneKeySource>& batch,
                         const CounterParameters& parameters, const Speculation& speculation) {
  launch_kernel<OnlyKey<CounterSource<OneKeySource>>>(device, stream, batch, parameters, speculation);
}

void launch_hybrid_batch(const Device& device, Stream stream, const BatchSource& batch,
                         const CounterParameters& parameters, const Speculation& speculation) {
  launch_kernel<WarpKey>(device, stream, batch, parameters, speculation);
}

}  // namespace warpcipher::cuda::lane_table
