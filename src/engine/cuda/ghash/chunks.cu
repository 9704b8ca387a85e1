// SPDX-License-Identifier: Apache-2.0
// GHASH in two levels. A warp hashes a chunk of a message (view.cuh):
//
//   P_k = sum of X_i H^(e-1-i) over the chunk's blocks, e its end
//
// on tensor cores (tensor.cuh, warpgroup_sm90a.cu) or by the kernel here. Then a warp, or a block of threads, takes
// each message: it sums P_k (H^c)^(K-1-k), where c is the number of blocks of a chunk and K the number of chunks. This
// is the same sum with H^c in place of H. It adds the lengths, and writes or checks the tag.
//
// Here lane l of w lanes takes blocks l, l + w, ... by Horner's rule in H^w; then products join the lanes. All factors
// are powers 2^j of H or of H^c.
//
// For many short messages, joining 32 lanes would take longer than hashing. So four lanes take a whole message, with
// its tag: here or, with one key, on tensor cores (tensor.cu).
#include "engine/cuda/ghash/launches.hpp"

#include <algorithm>

#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::ghash {

// Dynamic: a sum for each warp of a block.
extern __shared__ uint4 shared_memory[];

namespace {

using gf128::Element;

constexpr std::uint32_t warp_log = 5;
constexpr std::uint32_t block_log = 9;                // with more threads a lane has too few registers for a product
constexpr std::uint64_t chunks_for_wide_finish = 64;  // of one message
constexpr std::uint32_t threads = 256;
constexpr std::uint32_t few_log = 2;  // the lanes that take a short message
static_assert(scalar_squares == warp_log + 1 && chunk_squares_of_finish == 2 * warp_log &&
              short_squares == few_log + 1);
// Blocks on a multiprocessor of the kernel for short messages. With four a lane has 64 registers, which is enough for
// sm_90 (H200: 2% faster than three). On sm_100 and sm_120 even 80 registers are too few.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr std::uint32_t short_blocks = 2;
#else
constexpr std::uint32_t short_blocks = 4;
#endif

// Joins the lanes of a warp: the sum of x P^(31-l) over them, in the first. powers[j] is P^(2^j), j below 5. Every lane
// takes part.
__device__ __forceinline__ Element join_lanes(Element x, const Element* powers) {
#pragma unroll 1
  for (std::uint32_t j = warp_log; j-- > 0;) {
    x = gf128::add(gf128::gcm_multiply(x, powers[j]), from_lane_xor(x, 1u << j));
  }
  return x;
}

// Joins lanes with a power for each: the sum of x * power over the warp, in all lanes. One product in place of five
// dependent ones.
__device__ __forceinline__ Element join_lanes_by(const Element& x, const Element& power) {
  Element sum = gf128::gcm_multiply(x, power);
#pragma unroll
  for (std::uint32_t distance = warp_len / 2; distance > 0; distance /= 2) {
    sum = gf128::add(sum, from_lane_xor(sum, distance));
  }
  return sum;
}

// One lane's part of the sum of X_i P^(n-1-i) for i from 0 to n - 1. 2^log lanes share the sum; each takes every
// 2^log-th block. power is P^(2^log). load(i) gives X_i.
template <class Load>
__device__ __forceinline__ Element sum_of_lane(std::uint64_t n, std::uint32_t lane, std::uint32_t log,
                                               const Element& power, Load&& load) {
  const std::uint64_t rows = (n + (std::uint64_t{1} << log) - 1) >> log;
  const std::uint64_t missing = (rows << log) - n;  // the first row is short at its front
  Element sum{};
  if (rows != 0 && lane >= missing) sum = load(lane - missing);
  for (std::uint64_t row = 1; row < rows; ++row) {
    sum = gf128::add(gf128::gcm_multiply(sum, power), load((row << log) + lane - missing));
  }
  return sum;
}

template <class Hash>
__global__ void __launch_bounds__(threads) hash_chunks_kernel(const __grid_constant__ ChunkList list) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (blockDim.x / warp_len);
  for (std::uint64_t number = blockIdx.x + std::uint64_t{gridDim.x} * (threadIdx.x / warp_len); number < list.chunks;
       number += warps) {
    const Chunk chunk = find_chunk(list, number);
    const Element* const powers = list.powers_of(chunk.view.key);
    const Element part = sum_of_lane(chunk.blocks, lane_index(), warp_log, powers[warp_log],
                                     [&](std::uint64_t i) { return Hash::element(chunk.load(i)); });
    const Element sum = join_lanes(part, powers);
    if (lane_index() == 0) list.sums[number] = sum;
  }
}

// The hash of a message's chunks, in lane 0. Lanes: 32, a warp, or 512, a block.
template <std::uint32_t Lanes>
__device__ __forceinline__ Element sum_of_chunks(const ChunkList& list, std::uint32_t message) {
  const HashView& view = list.views[message];
  const Element* const sums = list.sums + list.first_chunk[message];
  const Element* const powers = list.powers_of(view.key) + list.chunk_powers;
  const std::uint64_t chunks = view.chunks();
  if (chunks <= 1) return chunks == 0 ? Element{} : sums[0];
  const auto load = [&](std::uint64_t i) { return sums[i]; };
  if constexpr (Lanes == warp_len) {
    return join_lanes(sum_of_lane(chunks, lane_index(), warp_log, powers[warp_log], load), powers);
  } else {
    constexpr std::uint32_t warps = Lanes / warp_len;
    static_assert(Lanes == 1u << block_log && warps <= warp_len, "the lanes of one warp join the sums of all");
    auto* const of_warps = reinterpret_cast<Element*>(shared_memory);
    static_assert(joining_powers == joining_of_warps + warps, "a power for each warp");
    const std::uint32_t lane = lane_index();
    const Element own = sum_of_lane(chunks, threadIdx.x, block_log, powers[block_log], load);
    const Element part = list.joining != nullptr ? join_lanes_by(own, list.joining[lane]) : join_lanes(own, powers);
    if (lane == 0) of_warps[threadIdx.x / warp_len] = part;
    __syncthreads();
    Element sum{};
    if (threadIdx.x < warp_len && list.joining != nullptr) {
      sum = join_lanes_by(lane < warps ? of_warps[lane] : Element{}, list.joining[joining_of_warps + lane % warps]);
    } else if (threadIdx.x < warp_len) {
      sum = join_lanes(lane < warp_len - warps ? Element{} : of_warps[lane - (warp_len - warps)], powers + warp_log);
    }
    __syncthreads();
    return sum;
  }
}

// Writes or checks the tag of a message whose hash, lengths included, is `hash`; or writes its POLYVAL.
__device__ __forceinline__ void settle(const ChunkList& list, std::uint32_t message, const HashView& view,
                                       const Element& hash, std::uint32_t* verdicts) {
  if (list.is_polyval()) {
    list.polyvals[message] = Polyval::block(hash);
    return;
  }
  const Block tag = to_block(hash) ^ (list.masks != nullptr ? list.masks[message] : view.mask);
  if (verdicts == nullptr) {
    store_bytes(global(view.tag), view.tag_len, tag);
  } else {
    const Block difference = tag ^ load_bytes(global(view.tag), view.tag_len);
    std::uint32_t bits = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < 16; ++i) bits |= i < view.tag_len ? get_byte(difference, i) : 0;
    verdicts[message] = bits == 0 ? 1 : 0;
  }
}

// Lanes: 1 when no message has more than one chunk, else 32 or 512.
template <std::uint32_t Lanes>
__global__ void __launch_bounds__(Lanes <= warp_len ? threads : Lanes)
    finish(const __grid_constant__ ChunkList list, std::uint32_t* verdicts) {
  const std::uint32_t groups = gridDim.x * (blockDim.x / Lanes);
  for (std::uint32_t message = (blockIdx.x * blockDim.x + threadIdx.x) / Lanes; message < list.messages;
       message += groups) {
    const HashView& view = list.views[message];
    if (list.least_chunked != 0 && view.blocks() < list.least_chunked) continue;
    Element hash{};
    if constexpr (Lanes == 1) {
      if (view.chunks() != 0) hash = list.sums[list.first_chunk[message]];
    } else {
      hash = sum_of_chunks<Lanes>(list, message);
    }
    if (threadIdx.x % Lanes != 0) continue;
    const Element* const powers = list.powers_of(view.key);  // H, H^2: the two products are independent
    const Element lengths = list.is_polyval() ? Polyval::lengths(view) : Ghash::lengths(view);
    hash = gf128::add(gf128::gcm_multiply(hash, powers[1]), gf128::gcm_multiply(lengths, powers[0]));
    settle(list, message, view, hash, verdicts);
  }
}

// Short messages, four lanes each. The lengths are one more block of the sequence X_0 ... X_n-1. Lane l takes every
// fourth block, counted back from the block that is 3 - l before the last. At the end it multiplies its sum by H^(4-l);
// so one product in each lane joins the lanes.
template <class Hash>
__global__ void __launch_bounds__(threads, short_blocks)
    hash_short_kernel(const __grid_constant__ ChunkList list, std::uint32_t* verdicts) {
  constexpr std::uint32_t lanes = 1u << few_log;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x / lanes;
  const std::uint32_t lane = lane_index() % lanes;
  std::uint64_t first = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x - lane_index()) / lanes;  // of the warp
  for (; first < list.messages; first += stride) {
    const std::uint64_t own = first + lane_index() / lanes;
    const bool is_there = own < list.messages;
    const auto message = static_cast<std::uint32_t>(is_there ? own : first);
    const HashView& view = list.views[message];
    const Element* const powers = list.powers_of(view.key);  // H, H^2, H^4, H^3
    const std::uint64_t text_blocks = view.blocks();
    const Chunk text{view, 0, text_blocks};
    const auto load = [&](std::uint64_t i) {
      return i == text_blocks ? Hash::lengths(view) : Hash::element(text.load(i));
    };
    const std::uint64_t missing = lanes - 1 - text_blocks % lanes;  // the first row is short at its front
    Element sum = lane < missing ? Element{} : load(lane - missing);
    const Element power = powers[few_log];
    for (std::uint64_t i = lanes + lane - missing; i <= text_blocks; i += lanes) {
      sum = gf128::add(gf128::gcm_multiply(sum, power), load(i));
    }
    sum = gf128::gcm_multiply(sum, powers[lane < 2 ? 2 + lane : 3 - lane]);
    sum = gf128::add(sum, from_lane_xor(sum, 2));
    sum = gf128::add(sum, from_lane_xor(sum, 1));
    if (is_there && lane == 0) settle(list, message, view, sum, verdicts);
  }
}

LaunchConfiguration configuration_for(const Device& device, std::uint64_t warps) {
  return configuration_of_lanes(device, warps * warp_len, threads, 8);
}

}  // namespace

bool needs_wide_finish(std::uint64_t most_blocks, std::uint64_t chunk_blocks) {
  return most_blocks > chunks_for_wide_finish * chunk_blocks;
}

void hash_chunks(const Device& device, Stream stream, const ChunkList& list) {
  launch(list.is_polyval() ? &hash_chunks_kernel<Polyval> : &hash_chunks_kernel<Ghash>,
         configuration_for(device, list.chunks), stream, list);
}

void finish_tags(const Device& device, Stream stream, const ChunkList& list, std::uint64_t most_blocks,
                 std::uint64_t chunk_blocks, std::uint32_t* verdicts) {
  if (needs_wide_finish(most_blocks, chunk_blocks)) {
    launch(&finish<1u << block_log>,
           {std::min(list.messages, device.multiprocessors), 1u << block_log, warp_len * sizeof(Element)}, stream, list,
           verdicts);
  } else if (most_blocks > chunk_blocks) {
    launch(&finish<warp_len>, configuration_for(device, list.messages), stream, list, verdicts);
  } else {
    launch(&finish<1>, configuration_for(device, (list.messages + warp_len - 1) / warp_len), stream, list, verdicts);
  }
}

void hash_short(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts) {
  constexpr std::uint64_t messages_of_warp = warp_len >> few_log;
  launch(list.is_polyval() ? &hash_short_kernel<Polyval> : &hash_short_kernel<Ghash>,
         configuration_for(device, (list.messages + messages_of_warp - 1) / messages_of_warp), stream, list, verdicts);
}

}  // namespace warpcipher::cuda::ghash
