// SPDX-License-Identifier: Apache-2.0
// Numbers modulo 2^130 - 5 as words in lanes (cipher/poly1305_words.hpp).
#pragma once

#include "cipher/poly1305_words.hpp"
#include "engine/cuda/chacha/elements.cuh"

namespace warpcipher::cuda::chacha {

using poly1305::Multiplier;
using poly1305::Number;
using poly1305::to_element;
using poly1305::to_number;

__device__ __forceinline__ Block clamp(const Block& r) {
  return {{r.words[0] & 0x0fffffff, r.words[1] & 0x0ffffffc, r.words[2] & 0x0ffffffc, r.words[3] & 0x0ffffffc}};
}

__device__ __forceinline__ void add_block(Number& x, const Block& b, std::uint32_t high) {
  x = poly1305::add(x, b.words, high);
}

}  // namespace warpcipher::cuda::chacha
