// SPDX-License-Identifier: Apache-2.0
// The kernels of GHASH that run on any GPU: chunks by the scalar kernel, tags from the sums of chunks of any kernel,
// and many short messages as a whole. All pointers are to device memory.
#pragma once

#include <cstdint>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::ghash {

struct ChunkList;

// Powers H^(2^j) of a key that hash_chunks() reads: j below this.
inline constexpr std::uint32_t scalar_squares = 6;
// Powers (H^c)^(2^j) that finish_tags() reads if a message has more than one chunk: j below this.
inline constexpr std::uint32_t chunk_squares_of_finish = 10;
// hash_short() reads H, H^2, H^4, and H^3 in place of the first power of a chunk.
inline constexpr std::uint32_t short_squares = 3;
inline constexpr std::uint64_t short_chunk_blocks = 3;

// Fills list.sums.
void hash_chunks(const Device& device, Stream stream, const ChunkList& list);

// Tags or verdicts from list.sums. most_blocks: of AAD and text of one message. verdicts: as authenticate().
void finish_tags(const Device& device, Stream stream, const ChunkList& list, std::uint64_t most_blocks,
                 std::uint64_t chunk_blocks, std::uint32_t* verdicts);

// Whether finish_tags() uses a block of threads for each message: then it can use ChunkList::joining.
bool needs_wide_finish(std::uint64_t most_blocks, std::uint64_t chunk_blocks);

// Messages of few blocks, from text to tags or verdicts.
void hash_short(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::ghash
