// SPDX-License-Identifier: Apache-2.0
// A counting sort: it counts the messages of each class, finds where each class begins, and then gives each message the
// next position in its class. Lanes of a warp with the same class share one atomic operation, for batches of few
// lengths.
#include "engine/cuda/inputs/order.hpp"

#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 128;
constexpr std::uint32_t length_classes = 4096;
constexpr std::uint32_t exact = 128;       // each length below has its own class
constexpr std::uint32_t of_doubling = 64;  // classes for lengths up to twice as long, and so on

// Longest first: class 0.
__device__ __forceinline__ std::uint32_t class_of(std::uint64_t units) {
  std::uint32_t number = static_cast<std::uint32_t>(units);
  if (units >= exact) {
    const auto doublings = static_cast<std::uint32_t>(57 - __clzll(static_cast<long long>(units)));
    number = exact + (doublings - 1) * of_doubling + (static_cast<std::uint32_t>(units >> doublings) - of_doubling);
  }
  return length_classes - 1 - number;
}
static_assert(exact + 57 * of_doubling <= length_classes);

// Adds the lanes of each class to its count. Returns the count before the lane was added. Every lane takes part.
__device__ __forceinline__ std::uint32_t count_lanes(std::uint32_t* counts, std::uint32_t number, bool is_there) {
  const std::uint32_t alike = lanes_alike(is_there ? number : length_classes);
  const std::uint32_t below = alike & ((1u << lane_index()) - 1);
  std::uint32_t before = 0;
  if (is_there && below == 0) before = atomicAdd(&counts[number], static_cast<std::uint32_t>(__popc(alike)));
  return from_lane(before, static_cast<std::uint32_t>(__ffs(static_cast<int>(alike)) - 1)) +
         static_cast<std::uint32_t>(__popc(below));
}

// Calls body(message, is_there) in whole warps.
template <class Body>
__device__ __forceinline__ void for_each_message(std::uint32_t messages, Body&& body) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t own = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::uint64_t first = own - lane_index(); first < messages; first += stride) {
    const std::uint64_t message = first + lane_index();
    const bool is_there = message < messages;
    body(static_cast<std::uint32_t>(is_there ? message : first), is_there);
  }
}

__device__ __forceinline__ std::uint64_t length_of(const MessageView& view) { return view.units; }
__device__ __forceinline__ std::uint64_t length_of(const HashView& view) { return view.blocks(); }

template <class View>
__global__ void __launch_bounds__(threads)
    count_lengths(const View* views, std::uint32_t messages, std::uint32_t* counts) {
  for_each_message(messages, [&](std::uint32_t message, bool is_there) {
    count_lanes(counts, class_of(length_of(views[message])), is_there);
  });
}

// Replaces each count by the number of messages in all classes before. One warp; a lane takes 32 neighbours.
__global__ void __launch_bounds__(warp_len) scan_counts(std::uint32_t* counts) {
  constexpr std::uint32_t counts_of_lane = 32;
  std::uint32_t before = 0;
  for (std::uint32_t first = 0; first < length_classes; first += counts_of_lane * warp_len) {
    std::uint32_t* const own = counts + first + counts_of_lane * lane_index();
    std::uint32_t count[counts_of_lane];
    std::uint32_t up_to = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < counts_of_lane; ++k) count[k] = own[k];
#pragma unroll
    for (std::uint32_t k = 0; k < counts_of_lane; ++k) up_to += count[k];
    const std::uint32_t all = up_to;
#pragma unroll
    for (std::uint32_t distance = 1; distance < warp_len; distance *= 2) {
      const std::uint32_t below = from_lane_below(up_to, distance);
      if (lane_index() >= distance) up_to += below;
    }
    std::uint32_t next = before + up_to - all;
#pragma unroll
    for (std::uint32_t k = 0; k < counts_of_lane; ++k) {
      own[k] = next;
      next += count[k];
    }
    before += from_lane(up_to, warp_len - 1);
  }
}

template <class View>
__global__ void __launch_bounds__(threads)
    place_messages(const View* views, std::uint32_t messages, std::uint32_t* places, std::uint32_t* order) {
  for_each_message(messages, [&](std::uint32_t message, bool is_there) {
    const std::uint32_t place = count_lanes(places, class_of(length_of(views[message])), is_there);
    if (is_there) order[place] = message;
  });
}

}  // namespace

template <class View>
LengthOrder::LengthOrder(const Device& device, Stream stream, const View* views, std::uint32_t messages)
    : order_(messages * sizeof(std::uint32_t), stream, Wiping::needless) {
  const StreamBuffer memory(length_classes * sizeof(std::uint32_t), stream, Wiping::needless);
  check(cudaMemsetAsync(memory.data(), 0, memory.size(), native(stream)), "clear device memory");
  auto* const places = reinterpret_cast<std::uint32_t*>(memory.data());
  auto* const order = reinterpret_cast<std::uint32_t*>(order_.data());
  const LaunchConfiguration configuration = configuration_of_lanes(device, messages, threads, 16);
  launch(&count_lengths<View>, configuration, stream, views, messages, places);
  launch(&scan_counts, {1, warp_len}, stream, places);
  launch(&place_messages<View>, configuration, stream, views, messages, places, order);
}
template LengthOrder::LengthOrder(const Device&, Stream, const MessageView*, std::uint32_t);
template LengthOrder::LengthOrder(const Device&, Stream, const HashView*, std::uint32_t);

}  // namespace warpcipher::cuda
