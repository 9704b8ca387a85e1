// SPDX-License-Identifier: Apache-2.0
// Stands in for the header of the same name on the emulated GPU: the one-bit matrix instruction played through as the
// PTX manual draws its fragments, copies in the background as copies on the spot.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/cuda/runtime/intrinsics.cuh"

namespace warpcipher::cuda::ghash {

using SharedAddress = std::uintptr_t;

inline SharedAddress shared_address(const void* p) { return reinterpret_cast<SharedAddress>(p); }

namespace emulated {

struct Operands {
  std::uint32_t a[4];
  std::uint32_t b[2];
};

inline Operands operands[2][32][32];  // of every lane of every warp of the block that runs, by turns

// c += the ones of A & B, for the two rows and two columns that a lane l = 4 g + t has: rows g and g + 8 are registers
// 0, 2 and 1, 3 of lanes 4 g to 4 g + 3, column 2 t + j is in the registers of lanes 4 (2 t + j) to 4 (2 t + j) + 3.
inline void multiply(std::int32_t (&c)[4], const Operands& own) {
  Operands* const warp = operands[emulation::turn()][threadIdx.x / warp_len];
  const std::uint32_t lane = lane_index();
  warp[lane] = own;
  emulation::sync_warp();
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t row = i / 2;
    const std::uint32_t column = 2 * (lane % 4) + i % 2;
    for (std::uint32_t t = 0; t < 4; ++t) {
      const Operands& of_row = warp[4 * (lane / 4) + t];
      const Operands& of_column = warp[4 * column + t];
      for (std::uint32_t k = 0; k < 2; ++k) c[i] += std::popcount(of_row.a[2 * k + row] & of_column.b[k]);
    }
  }
}

}  // namespace emulated

inline void count_ones(std::int32_t (&c)[4], const uint4& a, std::uint32_t b0, std::uint32_t b1) {
  emulated::multiply(c, {{a.x, a.y, a.z, a.w}, {b0, b1}});
}

inline void count_ones_anew(std::int32_t (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b0) {
  for (std::int32_t& count : c) count = 0;
  emulated::multiply(c, {{a0, a1, 0, 0}, {b0, 0}});
}

inline uint4 load_with_neighbours(const uint4* p) { return *p; }

inline void copy_in_background(SharedAddress to, const uint4* from) { *reinterpret_cast<uint4*>(to) = *from; }
inline void end_copy_group() {}
template <int N>
void wait_for_copy_groups() {}

inline uint4 load_shared(SharedAddress from) { return *reinterpret_cast<const uint4*>(from); }
inline void store_shared(SharedAddress to, const uint4& x) { *reinterpret_cast<uint4*>(to) = x; }

}  // namespace warpcipher::cuda::ghash
