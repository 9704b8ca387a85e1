// SPDX-License-Identifier: Apache-2.0
// Counter sharing: the interface of cipher.cuh and counter.cuh for consecutive counters.
#pragma once

#include "engine/cuda/runtime/block.cuh"

namespace warpcipher::cuda::lane_table {

// The byte in which neighbouring counters differ.
enum class CountingByte : std::uint8_t {
  last,   // byte 15: big-endian (SP 800-38A, SP 800-38D)
  first,  // byte 0: the first 32 bits count, little-endian (RFC 8452)
};

// The part of two rounds that blocks share which differ only in that byte. ShiftRows moves byte 15, and byte 0 too,
// into column 0 of round 1, and each of the four bytes of that column into another column of round 2:
//
//   round 1   column 0 = first_column ^ T3[byte 15 ^ its round key]       columns 1, 2, 3 are the same for all
//             column 0 = first_column ^ T0[byte 0 ^ its round key]        likewise
//   round 2   column c = second.words[c] ^ T[-c mod 4][byte -c mod 4 of column 0]
//
// So two rounds need 5 lookups for each block, not 32, and the first of them is the same in all tiles of a message.
struct CommonRounds {
  std::uint32_t first_column;
  Block second;
};

}  // namespace warpcipher::cuda::lane_table
