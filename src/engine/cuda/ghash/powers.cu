// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/ghash/launches.hpp"

#include "engine/cuda/ghash/matrices.cuh"
#include "engine/cuda/ghash/view.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda::ghash {
namespace {

using gf128::Element;

constexpr std::uint32_t threads = 256;

WARPCIPHER_HD inline void fill_squares(Element* powers, Element hash_key, std::uint32_t squares, std::uint32_t chunk_squares,
                                std::uint64_t chunk_blocks) {
  Element power = hash_key;
  for (std::uint32_t j = 0; j < squares + chunk_squares; ++j) {
    if (j == squares) power = gf128::gcm_power(hash_key, chunk_blocks);
    powers[j] = power;
    power = gf128::gcm_square(power);
  }
}

// The powers of all keys, one key in each lane.
__global__ void __launch_bounds__(threads)
    fill_squares_of_keys(Element* powers, const Element* hash_keys, std::uint32_t keys, std::uint32_t squares,
                         std::uint32_t chunk_squares, std::uint64_t chunk_blocks) {
  for (std::uint32_t key = blockIdx.x * blockDim.x + threadIdx.x; key < keys; key += gridDim.x * blockDim.x) {
    fill_squares(powers + std::size_t{squares + chunk_squares} * key, hash_keys[key], squares, chunk_squares,
                 chunk_blocks);
  }
}

// A PowerTable and, after it, the powers of H^c, for all keys, one key in each lane.
__global__ void __launch_bounds__(threads)
    fill_tables_of_keys(Element* powers, const Element* hash_keys, std::uint32_t keys, std::uint32_t chunk_squares,
                        std::uint64_t chunk_blocks) {
  for (std::uint32_t key = blockIdx.x * blockDim.x + threadIdx.x; key < keys; key += gridDim.x * blockDim.x) {
    Element* const table = powers + std::size_t{PowerTable::len + chunk_squares} * key;
    table[0] = hash_keys[key];
    PowerTable::fill(table);
    if (chunk_squares == 0) continue;
    Element power = gf128::gcm_power(table[0], chunk_blocks);
    for (std::uint32_t j = 0; j < chunk_squares; ++j) {
      table[PowerTable::len + j] = power;
      power = gf128::gcm_square(power);
    }
  }
}

}  // namespace

void fill_powers(Element* powers, Element hash_key, const Powers& wanted) {
  fill_squares(powers, hash_key, wanted.squares, wanted.chunk_squares, wanted.chunk_blocks);
}

void fill_joining(Element* joining, Element power) {
  Element next = gf128::gcm_one;
  for (std::uint32_t l = warp_len; l-- > 0;) {
    joining[l] = next;
    next = gf128::gcm_multiply(next, power);
  }
  const Element of_warp = next;
  next = gf128::gcm_one;
  for (std::uint32_t w = joining_powers; w-- > joining_of_warps;) {
    joining[w] = next;
    next = gf128::gcm_multiply(next, of_warp);
  }
}

void fill_powers_of_keys(const Device& device, Stream stream, Element* powers, const Element* hash_keys,
                         std::uint32_t keys, const Powers& wanted) {
  const LaunchConfiguration configuration = configuration_of_lanes(device, keys, threads, 8);
  if (wanted.in_table) {
    return launch(&fill_tables_of_keys, configuration, stream, powers, hash_keys, keys, wanted.chunk_squares,
                  wanted.chunk_blocks);
  }
  launch(&fill_squares_of_keys, configuration, stream, powers, hash_keys, keys, wanted.squares, wanted.chunk_squares,
         wanted.chunk_blocks);
}

}  // namespace warpcipher::cuda::ghash
