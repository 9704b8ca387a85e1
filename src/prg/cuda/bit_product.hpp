// SPDX-License-Identifier: Apache-2.0
// Sums of records over GF(2) on tensor cores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::prg::cuda {

inline constexpr std::uint32_t most_product_keys = 64;

// All in device memory, at multiples of 16 bytes.
struct BitProduct {
  const std::uint8_t* table;
  std::uint64_t records, record_len;
  const std::uint8_t* shares;  // a bit for each record: as many as the table has, or more
  std::uint64_t share_stride;  // bytes from key to key, a multiple of 16
  std::uint32_t keys;          // at most most_product_keys
  std::uint8_t* out;           // a record for each key
  std::uint32_t strips;        // is set
};

// Whether the GPU has the instruction, and the room.
bool has_bit_product(const ::warpcipher::cuda::Device& device, std::size_t record_len);

// Adds to `out`.
void add_bit_product(const ::warpcipher::cuda::Device& device, BitProduct product, Stream stream);

}  // namespace warpcipher::prg::cuda
