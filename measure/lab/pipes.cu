// SPDX-License-Identifier: Apache-2.0
// The highest rates of a multiprocessor: benchmarks compare kernels with these, not with a datasheet. The clock is read
// on the device at the same time.
#if WARPCIPHER_HAS_CUDA
#include <algorithm>
#include <cstddef>
#include <vector>

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

}  // namespace

PipeRate measure_pipe(Pipe pipe, std::uint32_t operations, Stream stream) {
  int device = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&device), "find the current device");
  check(cudaGetDeviceProperties(&properties, device), "look at the device");
  const auto blocks = static_cast<std::uint32_t>(properties.multiProcessorCount);
  const std::uint32_t loops = std::max<std::uint32_t>(1, (operations + loop_operations - 1) / loop_operations);
  const DeviceMemory elapsed(device, blocks * sizeof(Elapsed));
  const DeviceMemory sink(device, std::size_t{blocks} * threads * sizeof(std::uint32_t));
  // All of the shared memory: so no two blocks share a multiprocessor.
  cuda::launch(
      pipe == Pipe::logic ? &measure_kernel<LogicOperations> : &measure_kernel<SharedLoads>,
      {blocks, threads, properties.sharedMemPerBlockOptin - loop_operations * warp_len * sizeof(std::uint32_t)}, stream,
      elapsed.as<Elapsed>(), sink.as<std::uint32_t>(), loops);
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

void launch_nothing(Stream stream) { cuda::launch(&nothing_kernel, {1, 32}, stream); }

}  // namespace warpcipher::lab
#endif
