// SPDX-License-Identifier: Apache-2.0
// The lane-table family: AES from tables in shared memory of which every lane has its own copy in its own bank, so that
// two lanes of a warp never share a bank, whatever the data: the time depends on no secret.
//
// The copies of the entries of byte value x take 256 bytes (64 KiB a plane), the stride of the layout:
//
//   bytes    0..3     4..7         124..127   128..131        252..255
//   plane 0  T0[x]    T0[x]   ...  T0[x]      T1[x]      ...  T1[x]
//   plane 1  T2[x]    T2[x]   ...  T2[x]      T3[x]      ...  T3[x]
//   lane     0        1            31         0               31
//
// The address of a lookup is one byte permute: the state's byte to bits 8 to 15, four times the lane to bits 0 to 7;
// which table is the load's immediate offset. T1, T2, T3 are T0 rotated left by 8, 16, 24 bits.
#pragma once

#include <cstdint>

#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda::lane_table {

// Both planes: no rotation at all. For GPUs whose blocks may have 128 KiB of shared memory (compute
// capability 8.0, 9.0, 10.0).
struct Tables128 {
  static constexpr std::uint32_t planes = 2;
  static constexpr std::uint32_t shared_len = planes * 65536;
  static constexpr std::uint32_t stride_log = 8;
  static constexpr std::uint32_t offset(std::uint32_t table) { return table / 2 * 65536 + table % 2 * 128; }
  static constexpr std::uint32_t table_at(std::uint32_t address) { return address / 65536 * 2 + address / 128 % 2; }
};

// The same four tables one after another, with a stride of 128 bytes. The address is then a product, byte times 128
// plus four times the lane, which the multiply pipe computes (dot_product). For kernels that need the logic pipe for
// other work.
struct Tables128ByProduct {
  static constexpr std::uint32_t planes = 2;
  static constexpr std::uint32_t shared_len = planes * 65536;
  static constexpr std::uint32_t stride_log = 7;
  static constexpr std::uint32_t offset(std::uint32_t table) { return table * 32768; }
  static constexpr std::uint32_t table_at(std::uint32_t address) { return address / 32768; }
};

// Plane 0 only; the sum of T2 and T3 is rotated by 16 once for each column. For all other GPUs (7.5, 8.6, 8.9, 12.0).
struct Tables64 {
  static constexpr std::uint32_t planes = 1;
  static constexpr std::uint32_t shared_len = planes * 65536;
  static constexpr std::uint32_t stride_log = 8;
  static constexpr std::uint32_t offset(std::uint32_t table) { return table * 128; }
  static constexpr std::uint32_t table_at(std::uint32_t address) { return address / 128 % 2; }
};

// With more threads, a block could not have 64 registers for each thread on any GPU.
inline constexpr std::uint32_t block_threads = 1024;

enum class TableLayout : std::uint8_t { tables_128, tables_64 };

}  // namespace warpcipher::cuda::lane_table
