// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "constant_time.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/source.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace constant_time {
namespace {

using namespace warpcipher::cuda;

constexpr std::uint32_t fill_threads = 256;
constexpr std::uint32_t steps = 64;  // of four blocks a lane
constexpr std::uint32_t rounds = 10;

__device__ __forceinline__ Block generate(const Pattern& pattern, std::uint32_t i) {
  Block block;
#pragma unroll
  for (std::uint32_t w = 0; w < 4; ++w) {  // the finaliser of MurmurHash3
    std::uint32_t x = pattern.seed ^ (4 * i + w);
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    block.words[w] = ((x ^ x >> 16) & pattern.mask) ^ pattern.value;
  }
  return block;
}

__global__ void __launch_bounds__(fill_threads) fill_kernel(std::uint8_t* text, std::size_t blocks, Pattern pattern) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < blocks;
       i += std::size_t{gridDim.x} * blockDim.x) {
    store_aligned(text + 16 * i, generate(pattern, static_cast<std::uint32_t>(i)));
  }
}

__global__ void spin_kernel(std::uint32_t clocks) {
  const std::int64_t start = clock64();
  while (clock64() - start < clocks) {
  }
}

struct LookupSource {
  Pattern pattern;
  std::uint32_t schedule[lane_table::most_schedule_words];
  std::uint32_t* sink;
};

template <bool Inverse>
struct LaneTables {
  using Key = lane_table::ParameterKey;
  static constexpr std::uint32_t shared_len = lane_table::Tables128::shared_len;

  static __device__ __forceinline__ void fill() { lane_table::fill_tables<lane_table::Tables128, Inverse>(); }
  template <int N>
  static __device__ __forceinline__ void encrypt(const Key& key, Block (&blocks)[N]) {
    lane_table::LaneCipher<lane_table::Tables128, Inverse, rounds, Key>(key, rounds)(blocks);
  }
};

// One copy of T0 to T3 for all lanes, the address a secret byte: lanes that want different words of a bank wait for
// each other.
struct LeakingTables {
  using Key = lane_table::ParameterKey;
  static constexpr std::uint32_t shared_len = 4 * 256 * sizeof(std::uint32_t);

  static __device__ __forceinline__ std::uint32_t* tables() {
    return reinterpret_cast<std::uint32_t*>(lane_table::shared_tables);
  }
  static __device__ __forceinline__ void fill() {
    for (std::uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) {
      tables()[i] = rotate_left(lane_table::encryption_table.words[i % 256], 8 * (i / 256));
    }
  }
  static __device__ __forceinline__ std::uint32_t look_up(std::uint32_t table, std::uint32_t word) {
    return tables()[256 * table + (word >> 8 * table & 0xff)];
  }
  template <int N>
  static __device__ __forceinline__ void encrypt(const Key& key, Block (&blocks)[N]) {
#pragma unroll
    for (Block& block : blocks) block = block ^ key.round(0);
#pragma unroll
    for (std::uint32_t r = 1; r <= rounds; ++r) {  // the last with MixColumns: all the same for what is shown
      for (Block& block : blocks) {
        const Block s = block;
#pragma unroll
        for (std::uint32_t c = 0; c < 4; ++c) {
          block.words[c] = look_up(0, s.words[c]) ^ look_up(1, s.words[(c + 1) % 4]) ^
                           look_up(2, s.words[(c + 2) % 4]) ^ look_up(3, s.words[(c + 3) % 4]);
        }
        block = block ^ key.round(r);
      }
    }
  }
};

template <class Tables>
__global__ void __launch_bounds__(lookup_threads, 1) lookup_kernel(const __grid_constant__ LookupSource source) {
  Tables::fill();
  __syncthreads();
  const typename Tables::Key key{source.schedule};
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  Block sum{};
#pragma unroll 1
  for (std::uint32_t step = 0; step < steps; ++step) {
    Block blocks[4];
#pragma unroll
    for (std::uint32_t n = 0; n < 4; ++n) blocks[n] = generate(source.pattern, (thread * steps + step) * 4 + n);
    Tables::encrypt(key, blocks);
#pragma unroll
    for (const Block& block : blocks) sum = sum ^ block;
  }
  source.sink[thread] = sum.words[0] ^ sum.words[1] ^ sum.words[2] ^ sum.words[3];
}

template <class Tables>
void launch_lookups(const LookupSource& source, std::uint32_t multiprocessors, cudaStream_t stream) {
  launch(&lookup_kernel<Tables>, LaunchConfiguration{multiprocessors, lookup_threads, Tables::shared_len}, stream,
         source);
}

}  // namespace

void fill(std::uint8_t* text, std::size_t len, const Pattern& pattern, cudaStream_t stream) {
  launch(&fill_kernel, LaunchConfiguration{1024, fill_threads}, stream, text, len / 16, pattern);
}

void spin(std::uint32_t clocks, cudaStream_t stream) {
  launch(&spin_kernel, LaunchConfiguration{1, 1}, stream, clocks);
}

void run_lookups(Lookups lookups, const std::uint32_t* words, const Pattern& pattern, std::uint32_t* sink,
                 std::uint32_t multiprocessors, cudaStream_t stream) {
  LookupSource source{};
  source.pattern = pattern;
  source.sink = sink;
  std::copy(words, words + lane_table::most_schedule_words, source.schedule);
  switch (lookups) {
    case Lookups::lane_tables:
      return launch_lookups<LaneTables<false>>(source, multiprocessors, stream);
    case Lookups::lane_tables_inverse:
      return launch_lookups<LaneTables<true>>(source, multiprocessors, stream);
    case Lookups::leaking_tables:
      return launch_lookups<LeakingTables>(source, multiprocessors, stream);
  }
}

}  // namespace constant_time
