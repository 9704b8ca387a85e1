// SPDX-License-Identifier: Apache-2.0
// A pass of triple DES whose key does not change within a launch, in the search kernel: a loop of two rounds, so that
// the innermost loop of the search stays short enough for the caches of instructions. Of its key the kernel has masks
// in shared memory, the same for all threads of a block.
//
// A half block is carried with the key of its next use added, for the S-box that takes each bit first: with k_n of
// round n, x_n = half[n] ^ k_n, and
//
//   x_(n + 1) = x_(n - 1) ^ f(half[n], K_n) ^ (k_(n - 1) ^ k_(n + 1))      k_0 = 0
//
// is one gate for each bit, of three inputs. The 16 bits that a second S-box takes differ there by another mask, which
// the multiply pipe adds (des_ptx.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "search/cuda/des_circuit.hpp"

namespace warpcipher::search::cuda {

// Words of shared memory for a pass: 48 for each round, 32 for what goes in and 32 for what comes out.
inline constexpr std::size_t known_pass_words = 16 * 48 + 2 * 32;

// Gates of a pass: S-boxes and sums of 16 rounds.
std::size_t known_pass_gates();

// What the text uses: operands, names of registers, and a prefix for registers and labels of its own. %one and %two are
// as des_ptx.hpp has them.
struct KnownPass {
  DesPass pass;
  std::string prefix;
  std::string shared;                            // register: where its words are
  std::array<std::string, 64> from, to;          // halves 0 and 1; halves 17 and 16, which are 0 and 1 of the next pass
  std::array<std::string, des_key_bits> planes;  // by position in PC-1's output
};

// Registers and masks, once a thread. All threads of a block write the same; a barrier is to follow.
std::string write_known_pass_masks(const KnownPass& pass);

// `to` from `from`.
std::string write_known_pass(const KnownPass& pass);

}  // namespace warpcipher::search::cuda
