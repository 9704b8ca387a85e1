// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/des/launches.hpp"

#include "engine/cuda/aes/serial.cuh"
#include "engine/cuda/des/cipher.cuh"
#include "engine/cuda/inputs/des_schedules.hpp"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {
namespace {

struct LaneKey {
  const uint2* words;
  __device__ __forceinline__ uint2 round(std::uint32_t r) const { return __ldg(words + warp_len * r); }
};

struct SerialParameters {
  const MessageView* views;
  const std::uint32_t* order;
  const uint2* subkeys;
  std::uint32_t messages;
  std::uint32_t rounds;
  bool one_key;
  Feedback feedback;
};

__global__ void __launch_bounds__(block_threads, 1) serial_des_kernel(const __grid_constant__ SerialParameters batch) {
  fill_des_tables();
  __syncthreads();
  for_each_group(batch.messages, [&](std::uint32_t first) {
    const std::uint32_t own = first + lane_index();
    if (own >= batch.messages) return;
    const LaneKey key{batch.subkeys + (batch.one_key ? 0 : std::size_t{first} * batch.rounds + lane_index())};
    const MessageView& view = batch.views[batch.order != nullptr ? batch.order[own] : own];
    run_message(SerialDes<LaneKey>{key, batch.rounds}, batch.feedback, view, 0, view.start);
  });
}

}  // namespace

void run_serial_batch(const Device& device, Stream stream, Mode mode, const SerialDesBatch& batch) {
  LaunchConfiguration configuration = serial_configuration(device, batch.messages, block_threads / warp_len);
  configuration.shared_len = DesTables::shared_len;
  const DesSchedules& schedules = batch.schedules;
  launch(&serial_des_kernel, configuration, stream,
         SerialParameters{batch.views, batch.order, schedules.subkeys(), batch.messages, schedules.rounds(),
                          schedules.of_one_key(), feedback_of(mode)});
}

}  // namespace warpcipher::cuda::lane_table
