// SPDX-License-Identifier: Apache-2.0
// The end of the search kernel for DES: the keys that a thread has noted are tested in full, 32 at once, one in each
// bit of a word (Biham 1997). They differ in their lanes and turns alone, so a few bits of each are moved into words,
// and all others are words that the thread has. A loop of two rounds, as short as may be: it runs once for 4096 keys.
// At the end the keys' words are wiped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "search/cuda/des_circuit.hpp"

namespace warpcipher::search::cuda {

struct DesCheck {
  // C and D of the key schedule of the present pass, each twice, one after the other: the bits of a round lie as far
  // from those of the round before as the halves are rotated.
  static constexpr std::size_t key_words = 4 * 28;

  std::vector<DesPass> passes;
  std::uint64_t known = 0;                       // bit i: input 64 + i is to be compared
  std::uint32_t threads = 0;                     // of a block: the distance of a thread's words in shared memory
  std::vector<std::uint8_t> varying;             // positions of the key's bits: lanes, then turns
  std::array<std::string, des_inputs> inputs;    // the operands that hold them
  std::array<std::string, most_key_bits> masks;  // likewise, by position; "[...]": in shared memory
};

// Before it, %note is behind the last entry of `notes` in local memory, a word of differences and a turn each, with
// room for one more; %slots points to a thread's words in shared memory, of which nothing is needed any more.
// %granule and %thread go into the hits as they are.
std::string write_des_check(const DesCheck& check);

}  // namespace warpcipher::search::cuda
