// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/bounds_kernels.hpp"

#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace bounds {
namespace {

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
  static __device__ __forceinline__ void step(std::uint32_t (&values)[saved_ciphertext],
                                              const volatile std::uint32_t* own, std::uint32_t row) {
#pragma unroll
    for (std::uint32_t i = 0; i < saved_ciphertext; i += 2) {
      const std::uint32_t first = own[(row * saved_ciphertext + i) * warp_len];
      const std::uint32_t second = own[(row * saved_ciphertext + i + 1) * warp_len];
      logic(values[i], first, second);  // one for two loads, on a pipe of twice the rate: never the limit
    }
  }
};

struct LogicOperations {
  static __device__ __forceinline__ void step(std::uint32_t (&values)[saved_ciphertext], const volatile std::uint32_t*,
                                              std::uint32_t) {
#pragma unroll
    for (std::uint32_t i = 0; i < saved_ciphertext; ++i)
      logic(values[i], values[(i + 1) % saved_ciphertext], values[(i + 2) % saved_ciphertext]);
  }
};

template <class Operation>
__global__ void __launch_bounds__(threads) measure_kernel(Elapsed* elapsed, std::uint32_t* sink, std::uint32_t loops) {
  __shared__ std::uint32_t words[loop_operations * warp_len];
  for (std::uint32_t i = threadIdx.x; i < loop_operations * warp_len; i += threads) words[i] = i;
  std::uint32_t values[saved_ciphertext];
#pragma unroll
  for (std::uint32_t i = 0; i < saved_ciphertext; ++i) values[i] = threadIdx.x + i;
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
  for (std::uint32_t i = 0; i < saved_ciphertext; ++i) all ^= values[i];
  sink[blockIdx.x * threads + threadIdx.x] = all;
}

__global__ void nothing_kernel() {}

}  // namespace

void launch_pipe(Pipe pipe, std::uint32_t blocks, std::size_t shared_len, Elapsed* elapsed, std::uint32_t* sink,
                 std::uint32_t loops, Stream stream) {
  launch(pipe == Pipe::logic ? &measure_kernel<LogicOperations> : &measure_kernel<SharedLoads>,
         LaunchConfiguration{blocks, threads, shared_len - loop_operations * warp_len * sizeof(std::uint32_t)}, stream,
         elapsed, sink, loops);
}

}  // namespace bounds

void launch_nothing(Stream stream) { launch(&bounds::nothing_kernel, LaunchConfiguration{1, 32}, stream); }

}  // namespace warpcipher::cuda
