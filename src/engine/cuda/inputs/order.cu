// SPDX-License-Identifier: Apache-2.0
// A counting sort: it counts the messages of each class, finds where each class begins, and then gives each message the
// next position in its class. Lanes of a warp with the same class share one atomic operation, for batches of few
// lengths.
#include "engine/cuda/inputs/order.hpp"

#include "engine/cuda/runtime/block.cuh"
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

namespace {

// As NonceHash in src/message/checks.cpp.
__device__ __forceinline__ std::uint64_t fold(std::uint64_t a, std::uint64_t b) { return a * b ^ __umul64hi(a, b); }

__device__ __forceinline__ std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) {
  return std::uint64_t{a} << 32 | b;
}

// The part that two messages must not have in common: its words, and zeros up to `count`, a multiple of four.
struct MaskedNonce {
  static constexpr std::uint32_t count = 8;
  const MessageView* views;
  const Block* masks;

  __device__ __forceinline__ void load(std::uint32_t message, std::uint32_t (&words)[count]) const {
    const Block nonce = views[message].start, mask = masks[message];
#pragma unroll
    for (int w = 0; w < 3; ++w) words[w] = nonce.words[w];
#pragma unroll
    for (int w = 0; w < 4; ++w) words[3 + w] = mask.words[w];
    words[7] = 0;
  }
};

template <bool Extended, bool HasKeys>
struct KeyedNonce {
  static constexpr std::uint32_t nonce_words = Extended ? 6 : 3;
  static constexpr std::uint32_t key_words = HasKeys ? 8 : 0;
  static constexpr std::uint32_t count = (nonce_words + key_words + 3) / 4 * 4;
  KeyedNonces nonces;

  __device__ __forceinline__ void load(std::uint32_t message, std::uint32_t (&words)[count]) const {
    const MessageView& view = nonces.views[message];
    const Block start = view.start;
#pragma unroll
    for (std::uint32_t w = nonce_words + key_words; w < count; ++w) words[w] = 0;
#pragma unroll
    for (std::uint32_t w = 0; w < 4 && w < nonce_words; ++w) words[w] = start.words[w];
    if constexpr (Extended) {
      words[4] = nonces.hash_views[message].mask.words[0];
      words[5] = nonces.hash_views[message].mask.words[1];
    }
    if constexpr (HasKeys) {
      const std::uint8_t* const key = global(nonces.keys) + std::uint64_t{32} * view.key;
      const bool aligned = reinterpret_cast<std::uintptr_t>(key) % 16 == 0;
#pragma unroll
      for (std::uint32_t half = 0; half < 2; ++half) {
        const Block part = aligned ? load_aligned(key + 16 * half) : load_bytes(key + 16 * half, 16);
#pragma unroll
        for (std::uint32_t w = 0; w < 4; ++w) words[nonce_words + 4 * half + w] = part.words[w];
      }
    }
  }
};

template <class Identity>
__global__ void __launch_bounds__(threads)
    enter_nonces(const __grid_constant__ Identity identity, std::uint32_t messages,
                 const __grid_constant__ NonceTable table, BatchSummary* summary) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < messages; i += stride) {
    std::uint32_t words[Identity::count];
    identity.load(static_cast<std::uint32_t>(i), words);
    std::uint64_t hash = table.seeds[0];
#pragma unroll
    for (std::uint32_t w = 0; w < Identity::count; w += 4) {
      hash = fold(hash ^ pair_of(words[w], words[w + 1]),
                  pair_of(words[w + 2], words[w + 3]) ^ table.seeds[1 + w / 4 % 2]);
    }
    const unsigned long long entry = (hash >> 32 << 32) | (i + 1);
    for (auto place = static_cast<std::uint32_t>(hash) & table.mask;; place = (place + 1) & table.mask) {
      const unsigned long long found = atomicCAS(&table.places[place], 0ull, entry);
      if (found == 0) break;
      if (found >> 32 != entry >> 32) continue;
      std::uint32_t others[Identity::count];
      identity.load(static_cast<std::uint32_t>(found) - 1, others);
      std::uint32_t difference = 0;
#pragma unroll
      for (std::uint32_t w = 0; w < Identity::count; ++w) difference |= words[w] ^ others[w];
      if (difference == 0) {
        summary->bad = 1;
        break;
      }
    }
  }
}

template <class Identity>
void enter(const Device& device, Stream stream, const Identity& identity, std::uint32_t messages,
           const NonceTable& table, BatchSummary* summary) {
  launch(&enter_nonces<Identity>, configuration_of_lanes(device, messages, threads, 16), stream, identity, messages,
         table, summary);
}

}  // namespace

void check_nonces(const Device& device, Stream stream, const MessageView* views, const Block* masks,
                  std::uint32_t messages, const NonceTable& table, BatchSummary* summary) {
  enter(device, stream, MaskedNonce{views, masks}, messages, table, summary);
}

void check_nonces(const Device& device, Stream stream, const KeyedNonces& nonces, std::uint32_t messages,
                  const NonceTable& table, BatchSummary* summary) {
  const auto run = [&](auto identity) { enter(device, stream, identity, messages, table, summary); };
  if (nonces.hash_views != nullptr) {
    return nonces.keys != nullptr ? run(KeyedNonce<true, true>{nonces}) : run(KeyedNonce<true, false>{nonces});
  }
  nonces.keys != nullptr ? run(KeyedNonce<false, true>{nonces}) : run(KeyedNonce<false, false>{nonces});
}

}  // namespace warpcipher::cuda
