// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/packed.cuh"

#include "engine/cuda/lane_table/launch_configuration.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

template <class Tables, int Rounds, class Source>
void launch_kernel(const Device& device, Stream stream, const Source& source, const PackedParameters& parameters,
                   const Speculation& speculation) {
  const std::uint64_t warps = (std::uint64_t{source.messages} << parameters.group_log) / warp_len + 1;
  launch(&packed_counter_kernel<Tables, Rounds, Source>, parallel_configuration(device, warps, Tables::shared_len),
         stream, source, parameters, speculation);
}

}  // namespace

void launch_packed(const Device& device, Stream stream, const OneKeySource& batch, const PackedParameters& parameters,
                   const Speculation& speculation) {
  batch.rounds == 10 ? launch_kernel<Tables128, 10>(device, stream, batch, parameters, speculation)
                     : launch_kernel<Tables128, 14>(device, stream, batch, parameters, speculation);
}

void launch_packed(const Device& device, Stream stream, const MessageList& list, const std::uint8_t* keys,
                   const PackedParameters& parameters, const Speculation& speculation) {
  launch_kernel<Tables128, 10>(device, stream, RawKeySource{list, 10, keys}, parameters, speculation);
}

void launch_packed(const Device& device, Stream stream, TableLayout layout, const BatchSource& batch,
                   const PackedParameters& parameters, const Speculation& speculation) {
  layout == TableLayout::tables_128 ? launch_kernel<Tables128, 0>(device, stream, batch, parameters, speculation)
                                    : launch_kernel<Tables64, 0>(device, stream, batch, parameters, speculation);
}

}  // namespace warpcipher::cuda::lane_table
