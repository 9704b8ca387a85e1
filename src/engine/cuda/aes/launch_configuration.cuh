// SPDX-License-Identifier: Apache-2.0
// The launch configuration of kernels that fill lane tables.
#pragma once

#include "engine/cuda/aes/table_layout.hpp"
#include "engine/cuda/runtime/intrinsics.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::lane_table {

// A block has as many warps as tiles, up to 32: more would only wait until the tables are filled.
inline LaunchConfiguration parallel_configuration(const Device& device, std::uint64_t tiles, std::size_t shared_len) {
  const std::uint64_t blocks = tiles < device.multiprocessors ? tiles : device.multiprocessors;
  std::uint64_t warps = (tiles + blocks - 1) / blocks;
  if (warps > block_threads / warp_len) warps = block_threads / warp_len;
  if (warps < 8) warps = 8;  // to fill the tables faster
  return {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(warps * warp_len), shared_len};
}

}  // namespace warpcipher::cuda::lane_table
