// SPDX-License-Identifier: Apache-2.0
// Single blocks of many messages, encrypted on the device: tweaks of XTS and masks of GCM tags. The host, in constant
// time without tables, takes a microsecond for each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/block.cuh"
#include "engine/cuda/launch.hpp"

namespace warpcipher::cuda::lane_table {

// As many blocks are worth the two launches.
inline constexpr std::size_t blocks_worth_a_launch = 16;

// Encrypts `count` blocks in device memory, in place, and then puts block i at first + i * stride, a multiple of 4.
// words: round keys as little-endian columns, in host memory; key_len: of AES, in bytes. Enqueued on the stream.
void encrypt_blocks(const Device& device, Stream stream, const std::uint32_t* words, std::size_t key_len, Block* blocks,
                    std::uint64_t count, void* first, std::size_t stride);

}  // namespace warpcipher::cuda::lane_table
