// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/aes/packed.cuh"

#include "engine/cuda/aes/source.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Tables, int Rounds, class Counter, bool Ends = false, class Source>
void launch_kernel(const Device& device, Stream stream, const Source& source, const PackedParameters& parameters,
                   const Speculation& speculation) {
  const std::uint64_t warps = (std::uint64_t{source.messages} << parameters.group_log) / warp_len + 1;
  launch(&packed_counter_kernel<Tables, Rounds, Source, Counter, Ends>,
         parallel_configuration(device, warps, Tables::shared_len), stream, source, parameters, speculation);
}

template <class Tables, int Rounds, class Source>
void launch_form(const Device& device, Stream stream, CounterForm form, const Source& source,
                 const PackedParameters& parameters, const Speculation& speculation) {
  form == CounterForm::first_word
      ? launch_kernel<Tables, Rounds, LittleEndianCounter>(device, stream, source, parameters, speculation)
      : launch_kernel<Tables, Rounds, BigEndianCounter>(device, stream, source, parameters, speculation);
}

}  // namespace

void launch_packed(const Device& device, Stream stream, const OneKeySource& batch, const PackedParameters& parameters,
                   const Speculation& speculation) {
  if (batch.lacks_ends != 0) {
    return batch.rounds == 10
               ? launch_kernel<Tables128, 10, BigEndianCounter, true>(device, stream, batch, parameters, speculation)
               : launch_kernel<Tables128, 14, BigEndianCounter, true>(device, stream, batch, parameters, speculation);
  }
  batch.rounds == 10 ? launch_kernel<Tables128, 10, BigEndianCounter>(device, stream, batch, parameters, speculation)
                     : launch_kernel<Tables128, 14, BigEndianCounter>(device, stream, batch, parameters, speculation);
}

void launch_packed(const Device& device, Stream stream, CounterForm form, const MessageList& list,
                   const std::uint8_t* keys, const PackedParameters& parameters, const Speculation& speculation) {
  launch_form<Tables128, 10>(device, stream, form, RawKeySource{list, 10, keys}, parameters, speculation);
}

void launch_packed(const Device& device, Stream stream, TableLayout layout, CounterForm form, const BatchSource& batch,
                   const PackedParameters& parameters, const Speculation& speculation) {
  if (batch.lacks_ends != 0) {
    return layout == TableLayout::tables_128
               ? launch_kernel<Tables128, 0, BigEndianCounter, true>(device, stream, batch, parameters, speculation)
               : launch_kernel<Tables64, 0, BigEndianCounter, true>(device, stream, batch, parameters, speculation);
  }
  layout == TableLayout::tables_128 ? launch_form<Tables128, 0>(device, stream, form, batch, parameters, speculation)
                                    : launch_form<Tables64, 0>(device, stream, form, batch, parameters, speculation);
}

}  // namespace warpcipher::cuda::lane_table
