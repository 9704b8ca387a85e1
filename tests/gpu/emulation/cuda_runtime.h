// SPDX-License-Identifier: Apache-2.0
// A GPU made of fibers: enough of the CUDA runtime and language for the project's .cu files to compile with a host
// compiler and run, lane by lane, with host memory as device memory. It shows wrong results, out-of-bounds and
// misaligned access (with sanitizers) and missing synchronisation inside a warp (lanes, warps and blocks run in
// shuffled order) and between streams (their work runs late and in shuffled order, runtime.cpp) on a machine without a
// GPU. There are two devices. It says nothing about time.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"

#define __host__
#define __device__
#define __constant__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Of the lane that runs now.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

// Runs `lane` for every thread of every block.
void run_grid(dim3 grid, dim3 block, std::size_t shared_len, const std::function<void()>& lane);

// Puts work at the end of a stream; it runs when something waits for it, or earlier. Refused when the stream is not of
// the current device, as launches are.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

void sync_block();
void sync_warp();

// 1 and 0 by turns: in which of two places a lane leaves what the others of its warp read after one sync_warp(). By the
// next they have read it, and by the one after it the place is written again.
unsigned turn();

// The values that the lanes of the warp give, until the next but one call.
const std::uint64_t* gather(std::uint64_t value);

// Element `index` of a texture.
template <class T>
T fetch(cudaTextureObject_t object, std::size_t index) {
  const auto& linear = reinterpret_cast<const cudaResourceDesc*>(object)->res.linear;
  if ((index + 1) * sizeof(T) > linear.sizeInBytes) return {};  // as CUDA: zero outside of the texture
  return static_cast<const T*>(linear.devPtr)[index];
}

}  // namespace emulation

inline void __syncthreads() { emulation::sync_block(); }
inline void __syncwarp() { emulation::sync_warp(); }
inline void __threadfence_system() {}

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  const unsigned source = threadIdx.x % 32 ^ static_cast<unsigned>(mask);
  return static_cast<T>(emulation::gather(static_cast<std::uint64_t>(value))[source]);
}

template <class T>
T __shfl_sync(unsigned, T value, int source) {
  return static_cast<T>(emulation::gather(static_cast<std::uint64_t>(value))[static_cast<unsigned>(source) % 32]);
}

template <class T>
T __shfl_up_sync(unsigned, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return static_cast<T>(emulation::gather(static_cast<std::uint64_t>(value))[lane < distance ? lane : lane - distance]);
}

inline unsigned __ballot_sync(unsigned, bool predicate) {
  const std::uint64_t* const all = emulation::gather(predicate ? 1 : 0);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i) bits |= static_cast<unsigned>(all[i]) << i;
  return bits;
}

template <class T>
unsigned __match_any_sync(unsigned, T value) {
  const std::uint64_t own = static_cast<std::uint64_t>(value);
  const std::uint64_t* const all = emulation::gather(own);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i) bits |= static_cast<unsigned>(all[i] == own) << i;
  return bits;
}

// Lanes take turns, so nothing can come between.
template <class T>
T atomicAdd(T* p, T x) {
  const T before = *p;
  *p += x;
  return before;
}

template <class T>
T atomicXor(T* p, T x) {
  const T before = *p;
  *p ^= x;
  return before;
}

inline unsigned atomicInc(unsigned* p, unsigned most) {
  const unsigned before = *p;
  *p = before >= most ? 0 : before + 1;
  return before;
}

template <class T>
T atomicMax(T* p, T x) {
  const T before = *p;
  if (before < x) *p = x;
  return before;
}

template <class T>
T atomicCAS(T* p, T expected, T x) {
  const T before = *p;
  if (before == expected) *p = x;
  return before;
}

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(Wide{a} * b >> 64);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }

inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (unsigned i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  }
  return result;
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return n % 32 == 0 ? high : high << n % 32 | low >> (32 - n % 32);
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return n % 32 == 0 ? low : low >> n % 32 | high << (32 - n % 32);
}

template <class T>
T __ldg(const T* p) {
  return *p;
}

template <class T>
void __stcs(T* p, const T& value) {
  *p = value;
}

template <class T>
T tex1Dfetch(cudaTextureObject_t object, int index) {
  return emulation::fetch<T>(object, static_cast<std::size_t>(index));
}

template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  return {8 * sizeof(T)};
}

template <class T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  return *address = const_cast<T*>(&symbol), cudaSuccess;
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return emulation::enqueue(
      config->stream, [launch = *config, kernel,
                       values = std::tuple<std::remove_cv_t<Parameters>...>(std::forward<Arguments>(arguments)...)] {
        emulation::run_grid(launch.gridDim, launch.blockDim, launch.dynamicSmemBytes,
                            [&] { std::apply(kernel, values); });
      });
}
