// SPDX-License-Identifier: Apache-2.0
// The end of the search kernel for DES: it tests the keys that a thread has noted in full, 32 at a time, one in each
// bit of a word (Biham 1997). The keys differ only in lane and turn, so a few bits of each are moved into words; for
// all others the thread has words already. The loop has two rounds and is as short as possible, because it runs only
// once for 4096 keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "search/cuda/des_circuit.hpp"

namespace warpcipher::search::cuda {

struct DesCheck {
  // C and D of the key schedule of the present pass, each twice, one after another: the bits of a round are found by
  // advancing as far as the halves are rotated.
  static constexpr std::size_t key_words = 4 * 28;

  std::vector<DesPass> passes;
  std::uint64_t known = 0;                       // bit i: input 64 + i is to be compared
  std::uint32_t threads = 0;                     // of a block: the stride of a thread's words in shared memory
  std::vector<std::uint8_t> varying;             // positions of the key's bits: lanes, then turns
  std::array<std::string, des_inputs> inputs;    // the operands that hold the inputs
  std::array<std::string, most_key_bits> masks;  // likewise, by position; "[...]": in shared memory
};

// Beforehand, %note points past the last entry of `notes` in local memory. An entry is a word of differences and a
// turn, and there is room for one more. %spills points to the thread's words in shared memory, whose contents no
// thread needs any longer. They have keys afterwards. %granule and %thread go into the hits unchanged.
std::string write_des_check(const DesCheck& check);

}  // namespace warpcipher::search::cuda
