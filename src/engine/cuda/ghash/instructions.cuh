// SPDX-License-Identifier: Apache-2.0
// The machine operations of GHASH on tensor cores, one function each. Compute capabilities 8.x and 9.0 have the one-bit
// matrix instruction. Older ones lack it, and newer ones emulate it slowly by other instructions; for these the kernel
// has no code.
#pragma once

#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda::ghash {

// An address in shared memory.
using SharedAddress = std::uint32_t;

__device__ __forceinline__ SharedAddress shared_address(const void* p) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(p));
}

// mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc: c[16][8] += popc(a[16][256] & b[256][8]).
__device__ __forceinline__ void count_ones(std::int32_t (&c)[4], const uint4& a, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc: c[16][8] = popc(a[16][128] & b[128][8]).
__device__ __forceinline__ void count_ones_anew(std::int32_t (&c)[4], std::uint32_t a0, std::uint32_t a1,
                                                std::uint32_t b0) {
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a0), "r"(a1), "r"(b0), "r"(0));
}

// ld.global.L2::256B.v4.u32: the L2 cache fetches the 256 bytes around it too. For lanes that read many texts, each a
// little at a time, which memory is slow to give.
__device__ __forceinline__ uint4 load_with_neighbours(const uint4* p) {
  uint4 x;
  asm volatile("ld.global.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(p));
  return x;
}

// The compiler keeps the order of these operations (volatile), but may move ordinary loads across them.

// cp.async.cg.shared.global: copies 16 bytes in the background, bypassing the L1 cache. Both addresses are multiples of
// 16.
__device__ __forceinline__ void copy_in_background(SharedAddress to, const uint4* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

// cp.async.commit_group: the copies of this thread since the last group become a group.
__device__ __forceinline__ void end_copy_group() { asm volatile("cp.async.commit_group;"); }

// cp.async.wait_group: waits until all groups of this thread but the last N have arrived.
template <int N>
__device__ __forceinline__ void wait_for_copy_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N));
}

// ld.shared.v4.u32
__device__ __forceinline__ uint4 load_shared(SharedAddress from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from));
  return x;
}

// st.shared.v4.u32
__device__ __forceinline__ void store_shared(SharedAddress to, const uint4& x) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w));
}

}  // namespace warpcipher::cuda::ghash
