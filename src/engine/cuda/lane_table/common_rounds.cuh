// SPDX-License-Identifier: Apache-2.0
// Counter sharing: what cipher.cuh and counter.cuh tell each other about neighbouring counters.
#pragma once

#include "engine/cuda/runtime/block.cuh"

namespace warpcipher::cuda::lane_table {

// What blocks that differ in byte 15 alone have in common after two rounds. ShiftRows brings byte 15 into column 0 of
// round 1 and the four bytes of that column into one column each of round 2:
//
//   round 1   column 0 = first_column ^ T3[byte 15 ^ its round key]       columns 1, 2, 3 are the same for all
//   round 2   column c = second.words[c] ^ T[-c mod 4][byte -c mod 4 of column 0]
//
// So two rounds cost 5 lookups a block, not 32, and the first of them is the same in all tiles of a message.
struct CommonRounds {
  std::uint32_t first_column;
  Block second;
};

}  // namespace warpcipher::cuda::lane_table
