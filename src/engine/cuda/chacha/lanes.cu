// SPDX-License-Identifier: Apache-2.0
// Poly1305 of many short messages: a lane or four take a message, from its AAD to its tag.
#include "engine/cuda/chacha/aead.hpp"
#include "engine/cuda/chacha/finish.cuh"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::chacha {
namespace {

constexpr std::uint32_t threads = 128;
constexpr std::uint32_t blocks_of_multiprocessor = 6;
constexpr std::uint32_t at_once = 4;  // blocks that a lane loads before it multiplies

// 2^log neighbouring lanes sum the blocks of a message, and its lengths: as sum_by_lanes(), with several loads in
// flight where they are plain.
__device__ __forceinline__ Element sum_of_message(const HashView& view, const Block& half_key, std::uint32_t lane,
                                                  std::uint32_t log) {
  const LanePowers powers = make_lane_powers(to_r(half_key), lane, log);
  const std::uint64_t blocks = view.blocks();
  const ghash::Chunk text{view, 0, blocks};
  const ghash::Chunk::Direct direct = text.direct();
  const std::uint64_t stride = std::uint64_t{1} << log;
  const std::uint64_t missing = (stride - (blocks + 1) % stride) % stride;  // the first row is short at its front
  Element sum{};
  std::uint64_t i = lane >= missing ? lane - missing : lane - missing + stride;
  while (i <= blocks) {
    if (i >= direct.begin && i + (at_once - 1) * stride < direct.end) {
      Block loaded[at_once];
#pragma unroll
      for (std::uint32_t k = 0; k < at_once; ++k) {
        loaded[k] = load_aligned(global_at<const std::uint8_t>(direct.origin + 16 * (i + k * stride)));
      }
#pragma unroll
      for (std::uint32_t k = 0; k < at_once; ++k) sum = multiply_add(sum, powers.step, to_element(loaded[k], 1));
      i += at_once * stride;
    } else {
      const Element next = i == blocks ? lengths_of(view) : to_element(text.load(i), 1);
      sum = multiply_add(sum, powers.step, next);
      i += stride;
    }
  }
  return sum_of_lanes(multiply(sum, powers.own), log);
}

template <std::uint32_t Log>
__global__ void __launch_bounds__(threads, blocks_of_multiprocessor)
    hash_kernel(const __grid_constant__ Tags tags, std::uint32_t messages) {
  constexpr std::uint32_t lanes = 1u << Log;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * threads / lanes;
  const std::uint32_t lane = lane_index() % lanes;
  std::uint64_t first = (std::uint64_t{blockIdx.x} * threads + threadIdx.x - lane_index()) / lanes;  // of the warp
  for (; first < messages; first += stride) {
    const std::uint64_t own = first + lane_index() / lanes;
    const bool is_there = own < messages;
    const auto message = static_cast<std::uint32_t>(is_there ? own : first);
    const Element sum = sum_of_message(tags.views[message], tags.r[message], lane, Log);
    if (is_there && lane == 0) settle(tags, message, sum);
  }
}

template <std::uint32_t Log>
void run(const Device& device, Stream stream, std::uint32_t messages, const Tags& tags) {
  launch(&hash_kernel<Log>,
         configuration_of_lanes(device, std::uint64_t{messages} << Log, threads, blocks_of_multiprocessor), stream,
         tags, messages);
}

}  // namespace

// A lane a message needs no powers but r. Four are for fewer messages.
void hash_by_lanes(const Device& device, Stream stream, std::uint32_t messages, const Tags& tags) {
  constexpr std::uint64_t lanes_of_multiprocessor = std::uint64_t{threads} * blocks_of_multiprocessor;
  messages >= device.multiprocessors* lanes_of_multiprocessor ? run<0>(device, stream, messages, tags)
                                                              : run<2>(device, stream, messages, tags);
}

}  // namespace warpcipher::cuda::chacha
