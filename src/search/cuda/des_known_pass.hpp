// SPDX-License-Identifier: Apache-2.0
// A pass of triple DES whose key does not change within a launch. In the search kernel it is a loop of two rounds, so
// that the innermost loop of the search still fits in the instruction caches. The masks of its key are in shared
// memory, the same for all threads of a block.
//
// A half block is kept with the key of its next use added: for each bit, the key bit of the first S-box that takes it.
// With k_n of round n, x_n = half[n] ^ k_n, and
//
//   x_(n + 1) = x_(n - 1) ^ f(half[n], K_n) ^ (k_(n - 1) ^ k_(n + 1))      k_0 = 0
//
// is one three-input gate for each bit. For the 16 bits that a second S-box takes, the multiply pipe adds another mask
// (des_ptx.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "search/cuda/des_circuit.hpp"

namespace warpcipher::search::cuda {

// Words of shared memory for a pass: 48 for each round, 32 for its input and 32 for its output.
inline constexpr std::size_t known_pass_words = 16 * 48 + 2 * 32;

// Gates of a pass: S-boxes and sums of 16 rounds.
std::size_t known_pass_gates();

// What the text uses: operands, names of registers, and a prefix for its own registers and labels. %one and %two are as
// des_ptx.hpp has them.
struct KnownPass {
  DesPass pass;
  std::string prefix;
  std::string shared;                            // register: where its words are
  std::array<std::string, 64> from, to;          // halves 0 and 1; halves 17 and 16, which are 0 and 1 of the next pass
  std::array<std::string, des_key_bits> planes;  // by position in PC-1's output
};

// Registers and masks, once for each thread. All threads of a block write the same values; a barrier must follow.
std::string write_known_pass_masks(const KnownPass& pass);

// Computes `to` from `from`.
std::string write_known_pass(const KnownPass& pass);

}  // namespace warpcipher::search::cuda
