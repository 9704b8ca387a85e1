// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/inputs/key_expansion.hpp"

#include "cipher/aes.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {

// Dynamic: the round keys of a schedule for each thread of a block.
extern __shared__ uint4 shared_round_keys[];

namespace {

constexpr std::uint32_t threads = 128;
constexpr std::size_t shared_round_keys_len = threads * most_round_keys * sizeof(uint4);

// The round keys of one schedule in shared memory, and nowhere else: a copy in local memory would not be wiped.
struct SharedRoundKeys {
  uint4* first;

  WARPCIPHER_INLINE void get(int r, std::uint32_t (&words)[4]) const {
    const uint4 v = first[r];
    words[0] = byte_swap32(v.x);
    words[1] = byte_swap32(v.y);
    words[2] = byte_swap32(v.z);
    words[3] = byte_swap32(v.w);
  }
  WARPCIPHER_INLINE void set(int r, const std::uint32_t (&words)[4]) const {
    first[r] = make_uint4(byte_swap32(words[0]), byte_swap32(words[1]), byte_swap32(words[2]), byte_swap32(words[3]));
  }
  WARPCIPHER_INLINE void set_pair(int i, std::uint32_t word, std::uint32_t next) const {
    auto* const pairs = reinterpret_cast<uint2*>(first + i / 4);
    pairs[i / 2 % 2] = make_uint2(byte_swap32(word), byte_swap32(next));
  }
};

// Calls body(i) for each i below count, in its own lane.
template <class Body>
__device__ __forceinline__ void for_each_lane(std::uint32_t count, Body&& body) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    body(static_cast<std::uint32_t>(i));
  }
}

LaunchConfiguration configuration_for(const Device& device, std::uint32_t lanes) {
  return configuration_of_lanes(device, lanes, threads, 16);
}

// Each lane makes a schedule in shared memory. Then the warp stores all of them, with 16 lanes for each schedule, so
// that stores are coalesced. When each lane stored its own, 2^20 keys took 643 us on an H200.
__global__ void __launch_bounds__(threads) expand_keys_kernel(const __grid_constant__ KeyExpansion expansion) {
  constexpr std::uint32_t lanes = 16;
  static_assert(most_round_keys <= lanes);
  const int rounds = static_cast<int>(expansion.key_len / 4 + 6);
  uint4* const of_warp = shared_round_keys + most_round_keys * (threadIdx.x - lane_index());
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x - lane_index();  // of the warp
  for (; first < expansion.count; first += stride) {
    const std::uint64_t i = first + lane_index();
    if (i < expansion.count) {
      SharedRoundKeys round_keys{of_warp + most_round_keys * lane_index()};
      aes::expand_key_into(round_keys, global(expansion.keys) + std::size_t{expansion.stride} * i, expansion.key_len);
      if (expansion.hash_keys != nullptr) {
        std::uint32_t columns[4] = {};
        aes::encrypt_columns(round_keys, rounds, columns);
        expansion.hash_keys[i] = {std::uint64_t{columns[0]} << 32 | columns[1],
                                  std::uint64_t{columns[2]} << 32 | columns[3]};
      }
      if (expansion.inverse) aes::turn_to_decryption(round_keys, rounds);
    }
    __syncwarp();
    const std::uint32_t number = lane_index() % lanes;
    for (std::uint32_t k = lane_index() / lanes; k < warp_len; k += warp_len / lanes) {
      if (first + k < expansion.count && number <= static_cast<std::uint32_t>(rounds)) {
        global(expansion.round_keys)[most_round_keys * (first + k) + number] = of_warp[most_round_keys * k + number];
      }
    }
    __syncwarp();
  }
  for (std::uint32_t r = 0; r < most_round_keys; ++r) of_warp[warp_len * r + lane_index()] = {};
}

__global__ void __launch_bounds__(threads)
    check_halves_kernel(const std::uint8_t* keys, std::uint32_t key_len, std::uint32_t count, std::uint32_t* bad) {
  for_each_lane(count, [&](std::uint32_t i) {
    const std::uint8_t* const key = global(keys) + std::size_t{key_len} * i;
    std::uint32_t difference = 0;
    for (std::uint32_t b = 0; b < key_len / 2; ++b) difference |= std::uint32_t{key[b]} ^ key[key_len / 2 + b];
    if (difference == 0) *bad = 1;
  });
}

}  // namespace

void expand_keys(const Device& device, Stream stream, const KeyExpansion& expansion) {
  LaunchConfiguration configuration = configuration_for(device, expansion.count);
  configuration.shared_len = shared_round_keys_len;
  launch(&expand_keys_kernel, configuration, stream, expansion);
}

void expand_tweak_keys(const Device& device, Stream stream, const KeyExpansion& first_halves, uint4* round_keys) {
  KeyExpansion expansion = first_halves;
  expansion.keys += expansion.key_len;
  expansion.inverse = false;
  expansion.round_keys = round_keys;
  expand_keys(device, stream, expansion);
}

void check_key_halves(const Device& device, Stream stream, const std::uint8_t* keys, std::uint32_t key_len,
                      std::uint32_t count, std::uint32_t* bad) {
  launch(&check_halves_kernel, configuration_for(device, count), stream, keys, key_len, count, bad);
}

}  // namespace warpcipher::cuda
