// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/lane_table/cipher.cuh"
#include "engine/cuda/lane_table/serial.cuh"

namespace warpcipher::cuda::lane_table {
namespace {

// The schedule of one lane among those of its warp: loads of a warp are contiguous.
struct LaneKey {
  const uint4* words;
  __device__ __forceinline__ Block round(std::uint32_t r) const {
    const uint4 v = __ldg(words + warp_len * r);
    return {{v.x, v.y, v.z, v.w}};
  }
};

template <class Tables>
struct SerialAes {
  static constexpr std::uint32_t block_len = 16;

  LaneCipher<Tables, false, 0, LaneKey> cipher;

  __device__ __forceinline__ Block operator()(const Block& block) const {
    Block blocks[1] = {block};
    cipher(blocks);
    return blocks[0];
  }
};

template <class SerialMode, class Tables>
__global__ void __launch_bounds__(block_threads, 1) serial_aes_kernel(const __grid_constant__ SerialSource source) {
  fill_tables<Tables, false>();
  __syncthreads();
  for_each_message(source.messages, [&](std::uint32_t message) {
    const LaneKey key{static_cast<const uint4*>(source.schedules) +
                      std::size_t{message / warp_len} * most_rows * warp_len + lane_index()};
    SerialMode::run(SerialAes<Tables>{{key, source.rounds}}, source.views[message]);
  });
}

template <class Tables>
void launch_form(const GroupRun& run, const SerialSource& source) {
  with_serial_mode(run.group.algorithm->mode.id, [&](auto mode) {
    launch(&serial_aes_kernel<decltype(mode), Tables>, serial_shape(run.device, source.messages, Tables::shared_len),
           run.stream, source);
  });
}

}  // namespace

void launch_serial_aes(const GroupRun& run, const SerialSource& source) {
  choose_form(run.device) == Form::tables_128 ? launch_form<Tables128>(run, source)
                                              : launch_form<Tables64>(run, source);
}

}  // namespace warpcipher::cuda::lane_table
