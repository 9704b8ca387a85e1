// SPDX-License-Identifier: Apache-2.0
// The modes that put text through the cipher, by hybrid kernels (hybrid_text.cuh): when, and the call.
#pragma once

#include <cstdint>

#include "engine/cuda/lane_table/table_layout.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda {
struct Block;
}

namespace warpcipher::cuda::lane_table {

struct OneKeySource;
struct SingleSource;

// 69 MB on H200. AES-128 at 67 MB, both kinds and tables alone: ECB 742 and 665, CBC 657 and 649, CFB 654 and 644 GB/s;
// at 34 MB ECB 602 and 612.
inline constexpr std::uint64_t least_text_tiles_of_multiprocessor = 128;

// Whether a launch of so many tiles had better be run so, where tiles are whole. Throws as choose_table_layout does for
// values of WARPCIPHER_BLOCKS.
bool choose_hybrid_text(const Device& device, TableLayout layout, std::uint64_t tiles,
                        std::uint64_t least_of_multiprocessor = least_text_tiles_of_multiprocessor);

// A message of ECB, or one to decrypt of CBC or CFB. chains: as ChainParameters.
void run_hybrid_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                     const Block* chains);

// Data units of XTS.
void run_hybrid_xts(const Device& device, Stream stream, bool inverse, const OneKeySource& batch);

}  // namespace warpcipher::cuda::lane_table
