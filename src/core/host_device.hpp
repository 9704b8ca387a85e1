// SPDX-License-Identifier: Apache-2.0
// The one macro of the project: marks a function that is compiled for the host and for the GPU from one source.
#pragma once

#if defined(__CUDACC__)
#define WARPCIPHER_HD __host__ __device__
#else
#define WARPCIPHER_HD
#endif

// Marks the small functions that straight-line cipher code is made of. They take arrays by reference; left out of
// line, or with a loop over the array left rolled, those arrays would move from registers to memory (local memory on
// a GPU).
#if defined(__CUDACC__)
#define WARPCIPHER_INLINE WARPCIPHER_HD __forceinline__
#else
#define WARPCIPHER_INLINE inline __attribute__((always_inline))
#endif

// Before a loop that indexes a register array; a host compiler decides for itself.
#if defined(__CUDA_ARCH__)
#define WARPCIPHER_UNROLL _Pragma("unroll")
#else
#define WARPCIPHER_UNROLL
#endif
