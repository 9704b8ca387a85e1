// SPDX-License-Identifier: Apache-2.0
// The powers of hash keys that the kernels of GHASH read: the host makes them for the keys that it knows, else the GPU.
#pragma once

#include <cstdint>

#include "cipher/gf128.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::ghash {

// Which powers of a key a kernel reads: ChunkList says what they are.
struct Powers {
  std::uint32_t squares;  // H^(2^j), j below this; or the length of a PowerTable
  std::uint32_t chunk_squares;
  std::uint64_t chunk_blocks;
  bool in_table = false;

  std::uint32_t of_key() const { return squares + chunk_squares; }
};

// Of one key, on the host. Not for Powers::in_table.
void fill_powers(gf128::Element* powers, gf128::Element hash_key, const Powers& wanted);

// The powers of ChunkList::joining, on the host. power: H^c.
void fill_joining(gf128::Element* joining, gf128::Element power);

// Of all keys, on the GPU: pointers to device memory.
void fill_powers_of_keys(const Device& device, Stream stream, gf128::Element* powers, const gf128::Element* hash_keys,
                         std::uint32_t keys, const Powers& wanted);

}  // namespace warpcipher::cuda::ghash
