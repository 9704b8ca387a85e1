// SPDX-License-Identifier: Apache-2.0
// Stands in for the header of the same name on the emulated GPU: the matrix instruction for bytes, played through as
// the PTX manual draws its fragments.
#pragma once

#include <cstdint>

#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda::chacha {

namespace emulated {

struct Operands {
  std::uint32_t a[4];
  std::uint32_t b[2];
};

inline Operands operands[2][32][32];  // of every lane of every warp of the block that runs, by turns

inline std::uint32_t product_of_bytes(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < 32; i += 8) sum += (a >> i & 0xff) * (b >> i & 0xff);
  return sum;
}

}  // namespace emulated

inline void multiply_bytes(std::int32_t (&c)[4], const uint4& a, std::uint32_t b0, std::uint32_t b1) {
  emulated::Operands* const warp = emulated::operands[emulation::turn()][threadIdx.x / warp_len];
  const std::uint32_t lane = lane_index();
  warp[lane] = {{a.x, a.y, a.z, a.w}, {b0, b1}};
  emulation::sync_warp();
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t row = i / 2;
    const std::uint32_t column = 2 * (lane % 4) + i % 2;
    for (std::uint32_t t = 0; t < 4; ++t) {
      const emulated::Operands& of_row = warp[4 * (lane / 4) + t];
      const emulated::Operands& of_column = warp[4 * column + t];
      for (std::uint32_t k = 0; k < 2; ++k) {
        c[i] += static_cast<std::int32_t>(emulated::product_of_bytes(of_row.a[2 * k + row], of_column.b[k]));
      }
    }
  }
}

}  // namespace warpcipher::cuda::chacha
