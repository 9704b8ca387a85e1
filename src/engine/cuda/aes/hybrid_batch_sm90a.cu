// SPDX-License-Identifier: Apache-2.0
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/hybrid_batch.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Key, class Mode>
void launch_kernel(const Device& device, Stream stream, bool aligned, const typename Key::Source& source,
                   const CounterParameters& parameters, const Speculation& speculation) {
  launch(aligned ? &hybrid_batch_kernel<Key, Mode, true> : &hybrid_batch_kernel<Key, Mode, false>,
         LaunchConfiguration{device.multiprocessors, block_threads, Key::shared_len}, stream, source, parameters,
         speculation);
}

template <class Key>
void launch_form(const Device& device, Stream stream, CounterForm form, bool aligned,
                 const typename Key::Source& source, const CounterParameters& parameters,
                 const Speculation& speculation) {
  form == CounterForm::first_word
      ? launch_kernel<Key, LittleEndianCounterMode>(device, stream, aligned, source, parameters, speculation)
      : launch_kernel<Key, CounterMode>(device, stream, aligned, source, parameters, speculation);
}

}  // namespace

void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form, bool aligned,
                         const CounterSource<OneKeySource>& batch, const CounterParameters& parameters,
                         const Speculation& speculation) {
  launch_form<OnlyKey<CounterSource<OneKeySource>>>(device, stream, form, aligned, batch, parameters, speculation);
}

void launch_hybrid_batch(const Device& device, Stream stream, CounterForm form, bool aligned, const BatchSource& batch,
                         const CounterParameters& parameters, const Speculation& speculation) {
  launch_form<WarpKey>(device, stream, form, aligned, batch, parameters, speculation);
}

}  // namespace warpcipher::cuda::lane_table
