// SPDX-License-Identifier: Apache-2.0
// The highest rates of a multiprocessor: benchmarks compare kernels with these, not with a datasheet. The clock is read
// on the device at the same time. And key stream that stays in registers, as published figures of such kernels count
// it: a lane makes some of the units of a stream (64 bytes of ChaCha20, 16 of AES-128-CTR), and writes the XOR of all
// words that it made.
#if WARPCIPHER_HAS_CUDA
#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "cipher/chacha.hpp"
#include "core/error.hpp"
#include "engine/cuda/aes/cipher.cuh"
#include "engine/cuda/aes/source.cuh"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "gpu.cuh"

namespace warpcipher::lab {
namespace {

using cuda::check;
using cuda::warp_len;

// 32 warps with eight independent operations each: enough in flight for any latency.
constexpr std::uint32_t threads = 1024;
constexpr std::uint32_t chains = 8;
constexpr std::uint32_t steps = 8;  // of each chain in a loop, so that the loop itself costs next to nothing
constexpr std::uint32_t loop_operations = chains * steps;

// The measurement of one block. It runs on one multiprocessor, so both counters belong to that.
struct Elapsed {
  std::uint64_t clocks;
  std::uint64_t nanoseconds;
};

// clock64: clocks of this multiprocessor.
__device__ __forceinline__ std::uint64_t clock_now() {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint64_t>(clock64());
#else
  return 0;
#endif
}

// %globaltimer: nanoseconds, of the whole device.
__device__ __forceinline__ std::uint64_t nanoseconds_now() {
  std::uint64_t now = 0;
#if defined(__CUDA_ARCH__)
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
#endif
  return now;
}

// lop3.b32 with the table of a ^ b ^ c. Volatile: the compiler must not remove what is measured.
__device__ __forceinline__ void logic(std::uint32_t& a, std::uint32_t b, std::uint32_t c) {
#if defined(__CUDA_ARCH__)
  asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(a) : "r"(b), "r"(c));
#else
  a ^= b ^ c;
#endif
}

struct SharedLoads {
  // Each step loads from the next row: lane i of every warp stays in bank i. Volatile: the compiler keeps every load.
  static __device__ __forceinline__ void step(std::uint32_t (&values)[chains], const volatile std::uint32_t* own,
                                              std::uint32_t row) {
#pragma unroll
    for (std::uint32_t i = 0; i < chains; i += 2) {
      const std::uint32_t first = own[(row * chains + i) * warp_len];
      const std::uint32_t second = own[(row * chains + i + 1) * warp_len];
      logic(values[i], first, second);  // one for two loads, on a pipe of twice the rate: never the limit
    }
  }
};

struct LogicOperations {
  static __device__ __forceinline__ void step(std::uint32_t (&values)[chains], const volatile std::uint32_t*,
                                              std::uint32_t) {
#pragma unroll
    for (std::uint32_t i = 0; i < chains; ++i) logic(values[i], values[(i + 1) % chains], values[(i + 2) % chains]);
  }
};

template <class Operation>
__global__ void __launch_bounds__(threads) measure_kernel(Elapsed* elapsed, std::uint32_t* sink, std::uint32_t loops) {
  __shared__ std::uint32_t words[loop_operations * warp_len];
  for (std::uint32_t i = threadIdx.x; i < loop_operations * warp_len; i += threads) words[i] = i;
  std::uint32_t values[chains];
#pragma unroll
  for (std::uint32_t i = 0; i < chains; ++i) values[i] = threadIdx.x + i;
  const volatile std::uint32_t* const own = words + threadIdx.x % warp_len;
  __syncthreads();
  const std::uint64_t nanoseconds = nanoseconds_now();
  const std::uint64_t clocks = clock_now();
#pragma unroll 1
  for (std::uint32_t loop = 0; loop < loops; ++loop) {
#pragma unroll
    for (std::uint32_t row = 0; row < steps; ++row) Operation::step(values, own, row);
  }
  __syncthreads();
  if (threadIdx.x == 0) elapsed[blockIdx.x] = {clock_now() - clocks, nanoseconds_now() - nanoseconds};
  std::uint32_t all = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < chains; ++i) all ^= values[i];
  sink[blockIdx.x * threads + threadIdx.x] = all;
}

__global__ void nothing_kernel() {}

template <class Value>
Value median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// ---- key stream -----------------------------------------------------------------------------------------------------

namespace lane_table = warpcipher::cuda::lane_table;
using warpcipher::cuda::Block;

// Of a nonce of zeros and a key of sevens.
constexpr std::array<std::uint8_t, 32> stream_key = [] {
  std::array<std::uint8_t, 32> key{};
  key.fill(7);
  return key;
}();
constexpr std::uint8_t stream_nonce[12] = {};

// Blocks that differ only in their counter: of the first round, columns 1 to 3 are made once.
struct ChaChaStart {
  chacha::State first;
  std::uint32_t after[16];

  ChaChaStart() : first(chacha::make_state(stream_key.data(), 0, stream_nonce)) {
    for (int i = 0; i < 16; ++i) after[i] = first.words[i];
    for (int i = 1; i < 4; ++i) chacha::quarter_round(after[i], after[4 + i], after[8 + i], after[12 + i]);
  }
};

constexpr std::uint32_t chacha_threads = 256, chacha_blocks = 4;  // 64 registers a lane

__global__ void __launch_bounds__(chacha_threads, chacha_blocks)
    chacha_kernel(const __grid_constant__ ChaChaStart start, std::uint32_t units, std::uint32_t* sums) {
  const std::uint32_t lane = blockIdx.x * chacha_threads + threadIdx.x;
  std::uint32_t sum = 0;
#pragma unroll 1
  for (std::uint32_t unit = lane; unit < units; unit += gridDim.x * chacha_threads) {
    std::uint32_t x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = i % 4 == 0 ? start.first.words[i] : start.after[i];
    x[12] = unit;
    chacha::quarter_round(x[0], x[4], x[8], x[12]);
    chacha::round_of_diagonals(x);
#pragma unroll
    for (int i = 1; i < chacha::double_rounds; ++i) chacha::double_round(x);
#pragma unroll
    for (int i = 0; i < 16; ++i) sum ^= x[i] + (i == 12 ? unit : start.first.words[i]);
  }
  sums[lane] = sum;
}

struct AesStart {
  std::uint32_t words[4 * 11];

  AesStart() {
    const aes::Schedule schedule = aes::expand_key(stream_key.data(), 16);
    for (int i = 0; i < 4 * 11; ++i) words[i] = byte_swap32(schedule.words[i]);
  }
};

constexpr std::uint32_t aes_threads = 1024;
using AesTables = lane_table::Tables128ByProduct;

// A lane makes eight blocks of a tile of 256, which share most of two rounds. units: a multiple of 256.
__global__ void __launch_bounds__(aes_threads, 1)
    aes_kernel(const __grid_constant__ AesStart start, std::uint32_t units, std::uint32_t* sums) {
  lane_table::fill_tables<AesTables, false>();
  __syncthreads();
  const lane_table::ParameterKey key{start.words};
  const lane_table::LaneCipher<AesTables, false, 10, lane_table::ParameterKey> cipher(key, 10);
  const std::uint32_t warps = gridDim.x * aes_threads / 32, lane = blockIdx.x * aes_threads + threadIdx.x;
  std::uint32_t entries[8], sum = 0;
  cipher.counting_entries(entries, threadIdx.x % 32);
#pragma unroll 1
  for (std::uint32_t tile = lane / 32; tile < units / 256; tile += warps) {
    const auto common = cipher.common_rounds(Block{{0, 0, 0, byte_swap32(256 * tile)}});
#pragma unroll
    for (int half = 0; half < 8; half += 4) {
      Block blocks[4];
      const std::uint32_t own[4] = {entries[half], entries[half + 1], entries[half + 2], entries[half + 3]};
      cipher.encrypt_rest(blocks, common, own);
#pragma unroll
      for (const Block& block : blocks) sum ^= block.words[0] ^ block.words[1] ^ block.words[2] ^ block.words[3];
    }
  }
  sums[lane] = sum;
}

struct CurrentDevice {
  CurrentDevice() {
    check(cudaGetDevice(&index), "find the current device");
    check(cudaGetDeviceProperties(&properties, index), "look at the device");
    multiprocessors = static_cast<std::uint32_t>(properties.multiProcessorCount);
  }
  int index = 0;
  cudaDeviceProp properties{};
  std::uint32_t multiprocessors;
};

}  // namespace

PipeRate measure_pipe(Pipe pipe, std::uint32_t operations, Stream stream) {
  const CurrentDevice device;
  const std::uint32_t blocks = device.multiprocessors;
  const std::uint32_t loops = std::max<std::uint32_t>(1, (operations + loop_operations - 1) / loop_operations);
  const DeviceMemory elapsed(device.index, blocks * sizeof(Elapsed));
  const DeviceMemory sink(device.index, std::size_t{blocks} * threads * sizeof(std::uint32_t));
  // All of the shared memory: so no two blocks share a multiprocessor.
  cuda::launch(
      pipe == Pipe::logic ? &measure_kernel<LogicOperations> : &measure_kernel<SharedLoads>,
      {blocks, threads, device.properties.sharedMemPerBlockOptin - loop_operations * warp_len * sizeof(std::uint32_t)},
      stream, elapsed.as<Elapsed>(), sink.as<std::uint32_t>(), loops);
  std::vector<Elapsed> host(blocks);
  const auto native = static_cast<cudaStream_t>(stream);
  check(cudaMemcpyAsync(host.data(), elapsed.as<Elapsed>(), blocks * sizeof(Elapsed), cudaMemcpyDeviceToHost, native),
        "copy a measurement");
  check(cudaStreamSynchronize(native), "wait for a measurement");
  std::vector<double> rates;
  std::vector<double> clocks;
  for (const Elapsed& block : host) {
    rates.push_back(double{threads} * loops * loop_operations / static_cast<double>(block.clocks));
    clocks.push_back(static_cast<double>(block.clocks) / static_cast<double>(block.nanoseconds) * 1e9);
  }
  return {median(rates), median(clocks)};
}

std::uint32_t start_key_stream(std::string_view name, std::uint32_t units, std::uint32_t* sums, Stream stream) {
  const std::uint32_t blocks = CurrentDevice().multiprocessors;
  if (name == "chacha20") {
    cuda::launch(&chacha_kernel, {chacha_blocks * blocks, chacha_threads}, stream, ChaChaStart(), units, sums);
    return chacha_blocks * blocks * chacha_threads;
  }
  if (name != "aes-128-ctr") {
    throw Error(Status::invalid_argument,
                "key stream is '" + std::string(name) + "': expected chacha20 or aes-128-ctr");
  }
  cuda::launch(&aes_kernel, {blocks, aes_threads, AesTables::shared_len}, stream, AesStart(), units, sums);
  return blocks * aes_threads;
}

void launch_nothing(Stream stream) { cuda::launch(&nothing_kernel, {1, 32}, stream); }

}  // namespace warpcipher::lab
#endif
