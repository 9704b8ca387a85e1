// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/lane_table/des.cuh"
#include "engine/cuda/lane_table/serial.cuh"
#include "engine/cuda/lane_table/serial_des.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

struct LaneKey {
  const uint2* words;
  __device__ __forceinline__ uint2 round(std::uint32_t r) const { return __ldg(words + warp_len * r); }
};

struct SerialParameters {
  SerialDesBatch batch;
  Feedback feedback;
};

__global__ void __launch_bounds__(block_threads, 1)
    serial_des_kernel(const __grid_constant__ SerialParameters parameters) {
  fill_des_tables();
  __syncthreads();
  const SerialDesBatch& batch = parameters.batch;
  for_each_group(batch.messages, [&](std::uint32_t first) {
    const LaneKey key{batch.schedules + std::size_t{first} * serial_des_rounds + lane_index()};
    if (first + lane_index() >= batch.messages) return;
    const MessageView& view = batch.views[first + lane_index()];
    run_message(SerialDes<LaneKey>{key, batch.rounds}, parameters.feedback, view, 0, view.start);
  });
}

}  // namespace

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialDesBatch& batch) {
  LaunchShape shape = serial_shape(device, batch.messages, block_threads / warp_len);
  shape.shared_len = DesTables::shared_len;
  launch(&serial_des_kernel, shape, stream, SerialParameters{batch, feedback_of(mode)});
}

}  // namespace warpcipher::cuda::lane_table
