// SPDX-License-Identifier: Apache-2.0
// Stands in for the header of the same name on the emulated GPU: the product of a warpgroup as the PTX manual draws its
// fragments. Each warp has 16 rows of its own and reads B from shared memory, so warps need not wait for each other.
#pragma once

#include "engine/cuda/ghash/instructions.cuh"

namespace warpcipher::cuda::ghash {

inline constexpr std::uint32_t shared_matrix_len = 4096;
inline constexpr std::uint32_t shared_matrix_half = 2048;

inline void show_shared_memory_to_products() {}
inline void begin_products() {}
inline void end_products() {}
inline void wait_for_products() {}

template <bool Add>
void multiply_by_shared(std::int32_t (&c)[16][4], const uint4& a, SharedAddress b) {
  emulated::Operands* const warp = emulated::operands[emulation::turn()][threadIdx.x / warp_len];
  const std::uint32_t lane = lane_index();
  warp[lane] = {{a.x, a.y, a.z, a.w}, {}};
  emulation::sync_warp();
  const auto* const words = reinterpret_cast<const std::uint32_t*>(b);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t row = i / 2 % 2;
    const std::uint32_t column = 2 * (lane % 4) + i % 2;
    std::int32_t count = Add ? c[i / 4][i % 4] : 0;
    for (std::uint32_t t = 0; t < 4; ++t) {
      const emulated::Operands& of_row = warp[4 * (lane / 4) + t];
      for (std::uint32_t k = 0; k < 2; ++k) {
        const std::uint32_t mask = words[(shared_matrix_half * k + 128 * (i / 4) + 16 * column) / 4 + t];
        count += std::popcount(of_row.a[2 * k + row] & mask);
      }
    }
    c[i / 4][i % 4] = count;
  }
}

inline uint4 load_ahead(const std::uint8_t* p) { return *reinterpret_cast<const uint4*>(p); }

}  // namespace warpcipher::cuda::ghash
