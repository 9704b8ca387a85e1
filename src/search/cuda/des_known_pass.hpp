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
// is one three-input gate for each bit. For the 16 bits that a second S-box takes, one multiply-add adds another mask:
// x ^ m = (2 m + 1) x + m for a mask of ones or zeros.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "search/cuda/des_circuit.hpp"

namespace warpcipher::search::cuda {

// Words of shared memory for a pass: for each round 32 masks, then m and 2 m + 1 for 16 more.
inline constexpr std::size_t known_pass_words = std::size_t{16} * (32 + 2 * 16);

// Gates of a pass: S-boxes and sums of 16 rounds.
std::size_t known_pass_gates();

// The key bits that the pass wants added to input i: k_1 for half 1. Those that it leaves added to output i: k_16 for
// half 16.
KeyBits known_pass_input_mask(const DesPass& pass, std::size_t i);
KeyBits known_pass_output_mask(const DesPass& pass, std::size_t i);

// The text's operands, names of registers, and a prefix for its own registers and labels.
struct KnownPass {
  DesPass pass;
  std::string prefix;
  std::string shared;                            // register: where its words are
  std::array<std::string, 64> from, to;          // halves 0 and 1 ^ k_1; halves 17 and 16 ^ k_16
  std::array<std::string, des_key_bits> planes;  // by position in PC-1's output
};

// Registers and masks, once for each thread. All threads of a block write the same values; a barrier must follow.
std::string write_known_pass_masks(const KnownPass& pass);

// Computes `to` from `from`.
std::string write_known_pass(const KnownPass& pass);

}  // namespace warpcipher::search::cuda
