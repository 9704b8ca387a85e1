// SPDX-License-Identifier: Apache-2.0
// Sectors: data units of XTS of one length and one key that follow each other, as one text (mixed_rows_sm90a.cu).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/cuda/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher {
class Key;
}

namespace warpcipher::cuda::lane_table {

// Pointers are to device memory.
struct DataUnits {
  const std::uint8_t* in;   // of the first; the others follow without gaps
  std::uint8_t* out;        // likewise
  const std::uint8_t* ivs;  // 16 bytes each
  const uint4* tweak_key;   // the round keys of the key for tweaks
  std::uint64_t units_of_each;
  std::uint32_t count;
  const Key& key;
};

// False, with nothing done, where another kernel had better run them: they are no multiples of 512 bytes, as long as a
// tile, or too few, or the device has no such kernel.
bool run_mixed_rows(const Device& device, Stream stream, const Algorithm& algorithm, Direction direction,
                    const DataUnits& units);

}  // namespace warpcipher::cuda::lane_table
