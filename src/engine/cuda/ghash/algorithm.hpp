// SPDX-License-Identifier: Apache-2.0
// The algorithms of GHASH, and each one's needs of a device. choose.hpp chooses. Host code only, so that the
// choice can be tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/runtime/gpu.hpp"

namespace warpcipher::cuda::ghash {

enum class GhashAlgorithm : std::uint8_t {
  few_lanes,          // carryless products on the multiply pipe, four lanes for each message: many short messages
  tensor_rows,        // many short messages, by the matrices of one key (message_rows.cuh)
  scalar,             // as few_lanes, with a warp for each chunk: any GPU, few texts that are not long
  tensor_one_key,     // the matrices of one key, shared by the warps of a block
  tensor_warpgroups,  // likewise, by asynchronous products (warpgroup.hpp): long texts on compute capability 9.0
  tensor_many_keys,   // every warp has its own
};

// GHASH's facts of a group. Blocks are of AAD and text.
struct Work {
  std::size_t messages;
  std::size_t keys;
  std::uint64_t blocks;
  std::uint64_t most_blocks;  // of one message
};

// For longer messages, other algorithms are faster than few_lanes.
inline constexpr std::uint64_t most_blocks_of_short = 512;

// The same in a batch of long and short messages, of which tensor_rows takes the short ones, in the order of length.
// One less than a power of two (inputs/order.hpp).
inline constexpr std::uint64_t most_blocks_of_rows = 1023;

// Shared memory of a block, in bytes. tensor.cu and warpgroup_sm90a.cu check that their kernels use as much.
inline constexpr std::size_t one_key_shared_len = 100864;
inline constexpr std::size_t many_keys_shared_len = 162816;
inline constexpr std::size_t warpgroup_shared_len = 70144;

constexpr std::size_t tensor_shared_len(std::size_t keys) {
  return keys == 1 ? one_key_shared_len : many_keys_shared_len;
}

// Whether the device can hash messages with that many keys on tensor cores.
inline bool has_tensor_ghash(const Device& device, std::size_t keys = 1) {
  return (device.major == 8 || device.major == 9) && device.shared_len >= tensor_shared_len(keys);
}

// Whether the device can hash by warpgroups.
inline bool has_warpgroup_products(const Device& device) {
  return device.major == 9 && device.minor == 0 && device.shared_len >= warpgroup_shared_len;
}

}  // namespace warpcipher::cuda::ghash
