// SPDX-License-Identifier: Apache-2.0
// The machine operations that kernels need and C++ lacks, one function each.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace warpcipher::cuda {

inline constexpr std::uint32_t warp_len = 32;

// Promises that p points to global memory. The compiler cannot know this of a pointer that it reads from memory; it
// would use the slower generic loads and stores.
template <class T>
__device__ __forceinline__ T* global(T* p) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

// Loads from global memory: a promise that the compiler also uses when the load depends on a condition.
template <class T>
__device__ __forceinline__ T* global_at(std::uint64_t address) {
#if defined(__CUDA_ARCH__)
  return static_cast<T*>(__cvta_global_to_generic(address));
#else
  return reinterpret_cast<T*>(address);
#endif
}

// x. The compiler takes it for another value each time, so it does not compute before a loop, and keep in registers,
// what follows from it.
__device__ __forceinline__ std::uint32_t again(std::uint32_t x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(x));
#endif
  return x;
}

__device__ __forceinline__ std::uint32_t lane_index() { return threadIdx.x % warp_len; }

// Four of the eight bytes b:a (a holds bytes 0 to 3), picked by the four low nibbles of `selector`: PRMT.
__device__ __forceinline__ std::uint32_t byte_permute(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  return __byte_perm(a, b, selector);
}

// The sum of the products of the bytes of a and b, and c: IDP, which the multiply pipe runs.
__device__ __forceinline__ std::uint32_t dot_product(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return __dp4a(a, b, c);
}

__device__ __forceinline__ std::uint32_t byte_swap(std::uint32_t x) { return __byte_perm(x, 0, 0x0123); }

__device__ __forceinline__ std::uint32_t rotate_left(std::uint32_t x, std::uint32_t n) {
  return __funnelshift_l(x, x, n);
}

// The value of the lane whose index differs in the bits of `mask`; every lane takes part.
template <class Word>
__device__ __forceinline__ Word from_lane_xor(Word x, std::uint32_t mask) {
  return __shfl_xor_sync(0xffffffffu, x, static_cast<int>(mask));
}

// The value of lane `source`, below 32; every lane takes part.
template <class Word>
__device__ __forceinline__ Word from_lane(Word x, std::uint32_t source) {
  return __shfl_sync(0xffffffffu, x, static_cast<int>(source));
}

// A bit for each lane in which `x` is true; every lane takes part.
__device__ __forceinline__ std::uint32_t lanes_with(bool x) { return __ballot_sync(0xffffffffu, x); }

// A bit for each lane that has the same x; every lane takes part.
__device__ __forceinline__ std::uint32_t lanes_alike(std::uint32_t x) { return __match_any_sync(0xffffffffu, x); }

// Whether `x` holds in every lane; every lane takes part.
__device__ __forceinline__ bool all_lanes(bool x) { return lanes_with(x) == 0xffffffffu; }

// The number of the warp in its block. It comes from lane 0, so that the compiler knows that it, and all that is
// computed from it, is equal in all lanes: such values use uniform registers, one for the warp.
__device__ __forceinline__ std::uint32_t warp_index() { return from_lane(threadIdx.x / warp_len, 0); }

// The value of the lane `distance` below; lanes less than `distance` keep their own. Every lane takes part.
template <class Word>
__device__ __forceinline__ Word from_lane_below(Word x, std::uint32_t distance) {
  return __shfl_up_sync(0xffffffffu, x, distance);
}

}  // namespace warpcipher::cuda
