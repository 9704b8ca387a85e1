// SPDX-License-Identifier: Apache-2.0
// The launches of GHASH on tensor cores.
#pragma once

#include <cstdint>

#include "engine/cuda/ghash/algorithm.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::ghash {

struct ChunkList;

// H^(2^j) that the algorithms on tensor cores need of a key: j below this.
inline constexpr std::uint32_t tensor_squares = 10;

// Warps that hash chunks at the same time on tensor cores.
std::uint32_t tensor_warps(const Device& device, GhashAlgorithm algorithm);

void hash_on_tensor_cores(const Device& device, Stream stream, GhashAlgorithm algorithm, const ChunkList& list);

// GhashAlgorithm::tensor_rows, with tags. Of the list it reads views, masks, messages and tensor_squares powers.
// verdicts: as authenticate().
void hash_rows(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::ghash
