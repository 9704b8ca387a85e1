// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/units.hpp"

#include "cipher/des_bitslice.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::search::cuda {

extern __shared__ std::uint32_t shared_planes[];  // of the launch: the planes of each thread's keys

namespace {

namespace bitslice = des::bitslice;

constexpr std::uint32_t threads = DesUnits::threads;
constexpr std::uint32_t lanes = DesUnits::lanes;
constexpr std::uint32_t planes_of_key = 64;

// A key for each bit of the words, in shared memory; the words of the threads are interleaved.
struct SharedSchedule {
  struct Subkey {
    const std::uint32_t* planes;
    const std::uint8_t* indices;
    template <int I>
    WARPCIPHER_INLINE constexpr std::uint32_t bit() const {
      return planes[indices[I] * threads];
    }
  };

  const std::uint32_t* planes;
  const std::uint8_t* indices;
  const std::uint8_t* key_of_pass;

  WARPCIPHER_INLINE constexpr Subkey subkey(int round) const {
    return {planes + key_of_pass[round / bitslice::rounds] * planes_of_key * threads,
            indices + bitslice::subkey_bits * round};
  }
};

__global__ void __launch_bounds__(threads) generic_kernel(const __grid_constant__ DesUnits p) {
  const std::uint32_t thread = blockIdx.x * threads + threadIdx.x;
  const std::uint32_t first = thread * lanes;
  if (first >= p.units) return;
  std::uint32_t* const planes = shared_planes + threadIdx.x;
  std::uint32_t words[64];
  for (std::uint32_t key = 0; key < p.key_len / 8; ++key) {
#pragma unroll
    for (std::uint32_t j = 0; j < lanes; ++j) {
      const std::uint32_t unit = first + j < p.units ? first + j : p.units - 1;
      const auto* const key_words =
          reinterpret_cast<const std::uint32_t*>(p.keys + std::size_t{unit} * p.key_len + std::size_t{8} * key);
      words[j] = key_words[0];
      words[lanes + j] = key_words[1];
    }
    bitslice::transpose(words);
#pragma unroll
    for (std::uint32_t m = 0; m < planes_of_key; ++m) planes[(key * planes_of_key + m) * threads] = words[m];
  }
  const SharedSchedule schedule{planes, p.indices, p.key_of_pass};
  const std::uint32_t turns = 1u << p.loops;
#pragma unroll 1
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (std::uint32_t m = 0; m < 64; ++m) words[m] = p.text[m];
    bitslice::transform(words, schedule, static_cast<int>(p.passes));
    std::uint32_t differences = 0;
#pragma unroll
    for (std::uint32_t m = 0; m < 64; ++m) differences |= (words[m] ^ p.expected[m]) & p.mask[m];
    if (differences != ~0u) {
      const std::uint32_t place = atomicAdd(p.hits, 1u);
      if (place < p.capacity) {
        reinterpret_cast<uint4*>(p.hits)[1 + place] = make_uint4(first, turn ^ turn >> 1, ~differences, 0);
      }
    }
    const std::uint32_t next = turn + 1;
    if (next < turns) {
      std::uint32_t bit = 0;  // that the Gray code changes next
      while ((next >> bit & 1u) == 0) ++bit;
      planes[p.toggles[bit] * threads] ^= ~0u;
    }
  }
}

}  // namespace

void launch_des_units(const DesUnits& p, Stream stream) {
  const std::uint32_t blocks = (p.units + threads * lanes - 1) / (threads * lanes);
  const std::size_t shared_len = p.key_len / 8 * planes_of_key * threads * sizeof(std::uint32_t);
  warpcipher::cuda::launch(&generic_kernel, {blocks, threads, shared_len}, stream, p);
}

}  // namespace warpcipher::search::cuda
