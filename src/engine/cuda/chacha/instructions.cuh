// SPDX-License-Identifier: Apache-2.0
// The machine operation of Poly1305 on tensor cores: products of bytes.
#pragma once

#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda::chacha {

// mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32: c[16][8] += a[16][32] b[32][8], bytes without a sign. Lane l = 4 g +
// t has in `a` the bytes 4 t to 4 t + 3 of row g and of row g + 8, then bytes 16 + 4 t on of both; in b0 and b1 the
// same bytes of column g; in c columns 2 t and 2 t + 1 of row g, then of row g + 8. Compute capability 7.5 has it in
// parts.
__device__ __forceinline__ void multiply_bytes(std::int32_t (&c)[4], const uint4& a, std::uint32_t b0,
                                               std::uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  const auto multiply = [](std::int32_t& c0, std::int32_t& c1, std::uint32_t x, std::uint32_t y) {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(c0), "+r"(c1)
        : "r"(x), "r"(y));
  };
  multiply(c[0], c[1], a.x, b0);
  multiply(c[2], c[3], a.y, b0);
  multiply(c[0], c[1], a.z, b1);
  multiply(c[2], c[3], a.w, b1);
#else
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#endif
}

}  // namespace warpcipher::cuda::chacha
