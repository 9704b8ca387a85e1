// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "core/wipe.hpp"
#include "engine/cuda/batch/aes_batch.hpp"
#include "engine/cuda/lane_table/cipher.cuh"
#include "engine/cuda/lane_table/serial.cuh"
#include "engine/cuda/lane_table/source.cuh"

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

template <class Tables, class Key>
struct SerialAes {
  static constexpr std::uint32_t block_len = 16;

  LaneCipher<Tables, false, 0, Key> cipher;

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
    SerialMode::run(SerialAes<Tables, LaneKey>{{key, source.rounds}}, source.views[message]);
  });
}

// A schedule in the constant bank.
struct OneKey {
  const MessageView* views;
  std::uint32_t messages;
  std::uint32_t rounds;
  std::uint32_t schedule[most_schedule_words];
};

template <class SerialMode>
__global__ void __launch_bounds__(block_threads, 1) serial_one_key_kernel(const __grid_constant__ OneKey source) {
  fill_tables<Tables128, false>();
  __syncthreads();
  const ParameterKey key{source.schedule};
  for_each_message(source.messages, [&](std::uint32_t message) {
    SerialMode::run(SerialAes<Tables128, ParameterKey>{{key, source.rounds}}, source.views[message]);
  });
}

// Schedules of a key each are read anew for each block: as many warps as have theirs in what the tables leave of the
// first cache, about 124 KiB on an H200, with room for text. There, CBC, messages of 4 KiB: 324 GB/s with 16 warps, 144
// with 32.
std::uint32_t most_warps_for(std::uint32_t rounds) {
  constexpr std::uint32_t cache_len = 96 * 1024;
  const std::uint32_t schedule_len = (rounds + 1) * warp_len * static_cast<std::uint32_t>(sizeof(uint4));
  return cache_len / schedule_len;
}

template <class Tables>
void launch_form(const GroupRun& run, const SerialSource& source) {
  with_serial_mode(run.group.algorithm->mode.id, [&](auto mode) {
    launch(&serial_aes_kernel<decltype(mode), Tables>,
           serial_shape(run.device, source.messages, Tables::shared_len, most_warps_for(source.rounds)), run.stream,
           source);
  });
}

}  // namespace

bool takes_one_key(const GroupRun& run) {
  return choose_form(run.device) == Form::tables_128 && run.group.algorithm->mode.id != Mode::cfb8;
}

void launch_serial_aes(const GroupRun& run, const SerialOneKey& source) {
  Secret<OneKey> one;
  one->views = source.views;
  one->messages = source.messages;
  one->rounds = source.rounds;
  std::copy_n(source.words, most_schedule_words, one->schedule);
  with_serial_mode(run.group.algorithm->mode.id, [&](auto mode) {
    if constexpr (!std::is_same_v<decltype(mode), SerialCfb8>) {
      launch(&serial_one_key_kernel<decltype(mode)>, serial_shape(run.device, source.messages, Tables128::shared_len),
             run.stream, *one);
    }
  });
}

void launch_serial_aes(const GroupRun& run, const SerialSource& source) {
  choose_form(run.device) == Form::tables_128 ? launch_form<Tables128>(run, source)
                                              : launch_form<Tables64>(run, source);
}

}  // namespace warpcipher::cuda::lane_table
