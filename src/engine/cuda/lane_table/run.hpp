// SPDX-License-Identifier: Apache-2.0
// The lane-table family as the engine calls it: a group of AES messages, or of DES messages in a serial mode.
#pragma once

#include <cstdint>

namespace warpcipher::cuda {
class AesBatch;
struct GroupRun;
}  // namespace warpcipher::cuda

namespace warpcipher::cuda::lane_table {

inline constexpr std::uint32_t tile_units = 256;

// Two kinds of warps want it so: a part of a tile takes logic as long as the whole.
constexpr bool are_mostly_whole(std::uint64_t units, std::uint64_t tiles) {
  return 2 * units > std::uint64_t{tile_units} * tiles;
}

// The text of a group of AES messages in a parallel mode; for GCM the counter mode inside it. batch: the group's, if
// it has been made already. verdicts: device memory, one word a message of the group; where it is 0, zeros are written
// in place of text. nullptr: all are good.
void run_parallel(const GroupRun& run, const AesBatch* batch = nullptr, const std::uint32_t* verdicts = nullptr);

// A group of AES or DES messages in a serial mode: a message a lane.
void run_serial(const GroupRun& run);

}  // namespace warpcipher::cuda::lane_table
