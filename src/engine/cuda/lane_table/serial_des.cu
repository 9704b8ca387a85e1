// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/des.cuh"
#include "engine/cuda/lane_table/serial.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

struct LaneKey {
  const uint2* words;
  __device__ __forceinline__ uint2 round(std::uint32_t r) const { return __ldg(words + warp_len * r); }
};

template <class SerialMode>
__global__ void __launch_bounds__(block_threads, 1) serial_des_kernel(const __grid_constant__ SerialSource source) {
  fill_des_tables();
  __syncthreads();
  for_each_message(source.messages, [&](std::uint32_t message) {
    const LaneKey key{static_cast<const uint2*>(source.schedules) +
                      std::size_t{message / warp_len} * serial_des_rounds * warp_len + lane_index()};
    SerialMode::run(SerialDes<LaneKey>{key, source.rounds}, source.views[message]);
  });
}

}  // namespace

void launch_serial_des(const GroupRun& run, const SerialSource& source) {
  with_serial_mode(run.group.algorithm->mode.id, [&](auto mode) {
    launch(&serial_des_kernel<decltype(mode)>, serial_shape(run.device, source.messages, DesTables::shared_len),
           run.stream, source);
  });
}

}  // namespace warpcipher::cuda::lane_table
