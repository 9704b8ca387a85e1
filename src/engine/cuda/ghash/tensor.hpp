// SPDX-License-Identifier: Apache-2.0
// Which kernel hashes the chunks of a group, and the launch of those on tensor cores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::ghash {

struct ChunkList;

enum class GhashAlgorithm : std::uint8_t {
  few_lanes,          // carryless products on the multiply pipe, four lanes a message: many short ones
  tensor_rows,        // the same by the matrices of one key (message_rows.cuh)
  scalar,             // the same, a warp a chunk: any GPU, texts that are few and not long
  tensor_one_key,     // the matrices of one key, shared by the warps of a block
  tensor_warpgroups,  // the same by asynchronous products (warpgroup.hpp): long texts on compute capability 9.0
  tensor_many_keys,   // every warp has its own
};

// H^(2^j) that the algorithms on tensor cores need of a key: j below this.
inline constexpr std::uint32_t tensor_squares = 10;

// Of these, longer messages are faster otherwise, whatever the keys: see choose_ghash().
inline constexpr std::uint64_t most_blocks_of_short = 512;

// What a group is to GHASH. Blocks are of AAD and text.
struct Work {
  std::size_t messages;
  std::size_t keys;
  std::uint64_t blocks;
  std::uint64_t most_blocks;  // of one message
};

// The algorithm for a group. WARPCIPHER_GHASH ("lanes", "rows", "scalar", "tensor" or "warpgroups") forces one, for
// tests and measurements; "warpgroups" and "rows" have no kernel for many keys, "rows" none for long messages, and
// leave those as they are. Throws Error{engine_failure} when the device cannot run the forced one,
// Error{invalid_argument} for another value.
GhashAlgorithm choose_ghash(const Device& device, const Work& work);

// Whether the device can hash on tensor cores, messages of so many keys; and the shared memory of a block that it needs
// for them.
bool has_tensor_ghash(const Device& device, std::size_t keys = 1);
std::size_t tensor_shared_len(std::size_t keys);

// Warps that hash chunks at the same time on tensor cores.
std::uint32_t tensor_warps(const Device& device, GhashAlgorithm algorithm);

void hash_on_tensor_cores(const Device& device, Stream stream, GhashAlgorithm algorithm, const ChunkList& list);

// GhashAlgorithm::tensor_rows, tags included: of the list views, masks, messages and powers, tensor_squares of them.
// verdicts: as authenticate().
void hash_rows(const Device& device, Stream stream, const ChunkList& list, std::uint32_t* verdicts);

}  // namespace warpcipher::cuda::ghash
