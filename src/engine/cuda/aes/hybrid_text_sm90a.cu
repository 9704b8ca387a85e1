// SPDX-License-Identifier: Apache-2.0
// In its own library (CMakeLists.txt), for the only compute capability on which it was measured.
#include "engine/cuda/aes/hybrid.hpp"
#include "engine/cuda/aes/hybrid_text.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

// Makes a data unit of each tile of `list`.
__global__ void cut_units_kernel(const __grid_constant__ TileList list, MessageView* units) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < list.tiles; i += stride) {
    const std::uint32_t message = find_message_alone(list.first_tile, list.messages, list.tiles, i);
    const MessageView& view = list.views[message];
    const std::uint64_t first = tile_units * (i - list.first_tile[message]);
    MessageView unit = view;
    unit.in += 16 * first;
    unit.out += 16 * first;
    unit.units = view.units - first < tile_units ? view.units - first : tile_units;
    unit.in_len = first + unit.units == view.units ? view.in_len - 16 * first : 16 * unit.units;
    unit.out_len = unit.in_len;
    unit.start = first_tweak(list, i, message);
    units[i] = unit;
  }
}

}  // namespace

void cut_units(const Device& device, Stream stream, const TileList& list, MessageView* units) {
  launch(&cut_units_kernel, configuration_of_lanes(device, list.tiles, 256, 8), stream, list, units);
}

template <class Mode, class Source, class Parameters>
void launch_hybrid_text(const Device& device, Stream stream, const TextSource<Source>& source,
                        const Parameters& parameters) {
  launch(&hybrid_text_kernel<Mode, Source>,
         LaunchConfiguration{device.multiprocessors, block_threads, HybridPolicy::shared_len}, stream, source,
         parameters);
}

template void launch_hybrid_text<EcbEncryption>(const Device&, Stream, const TextSource<SingleSource>&,
                                                const NoParameters&);
template void launch_hybrid_text<EcbDecryption>(const Device&, Stream, const TextSource<SingleSource>&,
                                                const NoParameters&);
template void launch_hybrid_text<CbcDecryption>(const Device&, Stream, const TextSource<SingleSource>&,
                                                const ChainParameters&);
template void launch_hybrid_text<CfbDecryption>(const Device&, Stream, const TextSource<SingleSource>&,
                                                const ChainParameters&);
template void launch_hybrid_text<XtsMode<false>>(const Device&, Stream, const TextSource<UnitSource>&,
                                                 const NoParameters&);
template void launch_hybrid_text<XtsMode<true>>(const Device&, Stream, const TextSource<UnitSource>&,
                                                const NoParameters&);

}  // namespace warpcipher::cuda::lane_table
