// SPDX-License-Identifier: Apache-2.0
// The machine operations of GHASH by warpgroups, one function each: the asynchronous one-bit matrix product of compute
// capability 9.0 (PTX: wgmma, only of sm_90a). A warpgroup is four neighbouring warps; all their threads take part.
#pragma once

#include "engine/cuda/ghash/instructions.cuh"

namespace warpcipher::cuda::ghash {

// The layout of a B of 256 x 128 bits: 2 x 16 pieces of 8 columns and 128 bits of k. A piece has 128 bytes, with 16
// bytes for each column. The upper half of k is 2 KiB after the lower (PTX manual, "Strides", K-major without
// swizzling).
inline constexpr std::uint32_t shared_matrix_len = 4096;
inline constexpr std::uint32_t shared_matrix_half = 2048;

// fence.proxy.async: after a barrier, products may read this thread's stores to shared memory.
__device__ __forceinline__ void show_shared_memory_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// wgmma.fence: before the first product that reads registers written since the last fence.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// wgmma.commit_group and wgmma.wait_group 0: waits until the products have been added and their registers may be used.
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc: c[64][128] = popc(a[64][256] & b[256][128]), added to c
// when Add. Fragments as of mma.m16n8k256 (matrix.hpp), 16 rows a warp; the counts of n-tile n are c[n].
template <bool Add>
__device__ __forceinline__ void multiply_by_shared(std::int32_t (&c)[16][4], const uint4& a, SharedAddress b) {
  const std::uint64_t descriptor =
      std::uint64_t{(b & 0x3ffff) >> 4} | std::uint64_t{shared_matrix_half >> 4} << 16 | std::uint64_t{128 >> 4} << 32;
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
      "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, add;\n}"
      : "+r"(c[0][0]), "+r"(c[0][1]), "+r"(c[0][2]), "+r"(c[0][3]), "+r"(c[1][0]), "+r"(c[1][1]), "+r"(c[1][2]),
        "+r"(c[1][3]), "+r"(c[2][0]), "+r"(c[2][1]), "+r"(c[2][2]), "+r"(c[2][3]), "+r"(c[3][0]), "+r"(c[3][1]),
        "+r"(c[3][2]), "+r"(c[3][3]), "+r"(c[4][0]), "+r"(c[4][1]), "+r"(c[4][2]), "+r"(c[4][3]), "+r"(c[5][0]),
        "+r"(c[5][1]), "+r"(c[5][2]), "+r"(c[5][3]), "+r"(c[6][0]), "+r"(c[6][1]), "+r"(c[6][2]), "+r"(c[6][3]),
        "+r"(c[7][0]), "+r"(c[7][1]), "+r"(c[7][2]), "+r"(c[7][3]), "+r"(c[8][0]), "+r"(c[8][1]), "+r"(c[8][2]),
        "+r"(c[8][3]), "+r"(c[9][0]), "+r"(c[9][1]), "+r"(c[9][2]), "+r"(c[9][3]), "+r"(c[10][0]), "+r"(c[10][1]),
        "+r"(c[10][2]), "+r"(c[10][3]), "+r"(c[11][0]), "+r"(c[11][1]), "+r"(c[11][2]), "+r"(c[11][3]), "+r"(c[12][0]),
        "+r"(c[12][1]), "+r"(c[12][2]), "+r"(c[12][3]), "+r"(c[13][0]), "+r"(c[13][1]), "+r"(c[13][2]), "+r"(c[13][3]),
        "+r"(c[14][0]), "+r"(c[14][1]), "+r"(c[14][2]), "+r"(c[14][3]), "+r"(c[15][0]), "+r"(c[15][1]), "+r"(c[15][2]),
        "+r"(c[15][3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(descriptor), "r"(Add ? 1 : 0));
}

// ld.global.v4.u32, at this point: the compiler would move an ordinary load to its first use, after the products that
// should run at the same time.
__device__ __forceinline__ uint4 load_ahead(const std::uint8_t* p) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p));
  return x;
}

}  // namespace warpcipher::cuda::ghash
