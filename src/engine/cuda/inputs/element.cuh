// SPDX-License-Identifier: Apache-2.0
// Elements of GF(2^128) and the blocks that hold them (SP 800-38D, section 6.3).
#pragma once

#include "cipher/gf128.hpp"
#include "engine/cuda/runtime/block.cuh"

namespace warpcipher::cuda {

__device__ __forceinline__ gf128::Element to_element(const Block& block) {
  return {std::uint64_t{byte_swap(block.words[0])} << 32 | byte_swap(block.words[1]),
          std::uint64_t{byte_swap(block.words[2])} << 32 | byte_swap(block.words[3])};
}

__device__ __forceinline__ Block to_block(const gf128::Element& element) {
  return {
      {byte_swap(static_cast<std::uint32_t>(element.high >> 32)), byte_swap(static_cast<std::uint32_t>(element.high)),
       byte_swap(static_cast<std::uint32_t>(element.low >> 32)), byte_swap(static_cast<std::uint32_t>(element.low))}};
}

}  // namespace warpcipher::cuda
