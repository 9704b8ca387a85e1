// SPDX-License-Identifier: Apache-2.0
// The modes that put text through the cipher, by two kinds of warps at once (mixed_text.cuh): when, and the call.
#pragma once

#include "engine/cuda/lane_table/form.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher::cuda {
struct Block;
}

namespace warpcipher::cuda::lane_table {

struct OneKeySource;
struct SingleSource;

// Whether a launch of so many tiles had better be run so, where tiles are whole. Throws as choose_form does for values
// of WARPCIPHER_BLOCKS.
bool choose_mixed_text(const Device& device, Form form, std::uint64_t tiles);

// A message of ECB, or one to decrypt of CBC or CFB. chains: as ChainParameters.
void run_mixed_text(const Device& device, Stream stream, Mode mode, bool inverse, const SingleSource& message,
                    const Block* chains);

// Data units of XTS.
void run_mixed_xts(const Device& device, Stream stream, bool inverse, const OneKeySource& batch);

}  // namespace warpcipher::cuda::lane_table
