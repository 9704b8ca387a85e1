// SPDX-License-Identifier: Apache-2.0
// GHASH by warpgroups, for compute capability 9.0: compiled for sm_90a only.
#pragma once

#include "engine/cuda/ghash/tensor.hpp"

namespace warpcipher::cuda::ghash {

// The blocks of a segment; chunks should be multiples of this.
inline constexpr std::uint64_t warpgroup_chunk_multiple = 512;

// Warps that hash chunks at the same time.
std::uint32_t warpgroup_warps(const Device& device);

// Hashes the chunks of messages of one key.
void hash_by_warpgroups(const Device& device, Stream stream, const ChunkList& list);

}  // namespace warpcipher::cuda::ghash
