// SPDX-License-Identifier: Apache-2.0
// In a library of its own (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/lane_table/hybrid_batch.cuh"
#include "engine/cuda/lane_table/hybrid_launch.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Key>
void launch_kernel(const Device& device, Stream stream, CounterForm form, const typename Key::Source& source,
                   const CounterParameters& parameters, const Speculation& speculation) {
  const LaunchConfiguration configuration{device.multiprocessors, block_threads, Key::shared_len};
  form == CounterForm::first_word
      ? launch(&hybrid_batch_kernel<Key, LittleEndianCounterMode>, configuration, stream, source, parameters,
               speculation)
      : launch(&hybrid_batch_kernel<Key, CounterMode>, configuration, stream, source, parameters, speculation);
}

}  // namespace

void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form,
                         const CounterSource<OneKeySource>& batch, const CounterParameters& parameters,
                         const Speculation& speculation) {
  launch_kernel<OnlyKey<CounterSource<OneKeySource>>>(device, stream, form, batch, parameters, speculation);
}

void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form, const BatchSource& batch,
                         const CounterParameters& parameters, const Speculation& speculation) {
  launch_kernel<WarpKey>(device, stream, form, batch, parameters, speculation);
}

}  // namespace warpcipher::cuda::lane_table
