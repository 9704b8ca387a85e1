// SPDX-License-Identifier: Apache-2.0
// The ways to compute GHASH by name, and what each demands of a device. choice/ghash.hpp decides between them. Host
// code alone, so that a choice can be made and tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda::ghash {

enum class GhashAlgorithm : std::uint8_t {
  few_lanes,          // carryless products on the multiply pipe, four lanes a message: many short ones
  tensor_rows,        // the same by the matrices of one key (message_rows.cuh)
  scalar,             // the same, a warp a chunk: any GPU, texts that are few and not long
  tensor_one_key,     // the matrices of one key, shared by the warps of a block
  tensor_warpgroups,  // the same by asynchronous products (warpgroup.hpp): long texts on compute capability 9.0
  tensor_many_keys,   // every warp has its own
};

// What a group is to GHASH. Blocks are of AAD and text.
struct Work {
  std::size_t messages;
  std::size_t keys;
  std::uint64_t blocks;
  std::uint64_t most_blocks;  // of one message
};

// Longer messages are faster otherwise than by few_lanes and tensor_rows, whatever the keys.
inline constexpr std::uint64_t most_blocks_of_short = 512;

// Shared memory of a block, in bytes. tensor.cu and warpgroup_sm90a.cu check that their kernels ask for as much.
inline constexpr std::size_t one_key_shared_len = 100864;
inline constexpr std::size_t many_keys_shared_len = 162816;
inline constexpr std::size_t warpgroup_shared_len = 70144;

constexpr std::size_t tensor_shared_len(std::size_t keys) {
  return keys == 1 ? one_key_shared_len : many_keys_shared_len;
}

// Whether the device can hash on tensor cores, messages of so many keys.
inline bool has_tensor_ghash(const Device& device, std::size_t keys = 1) {
  return (device.major == 8 || device.major == 9) && device.shared_len >= tensor_shared_len(keys);
}

// Whether the device can hash by warpgroups.
inline bool has_warpgroup_products(const Device& device) {
  return device.major == 9 && device.minor == 0 && device.shared_len >= warpgroup_shared_len;
}

}  // namespace warpcipher::cuda::ghash
