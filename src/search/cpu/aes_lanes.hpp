// SPDX-License-Identifier: Apache-2.0
// AES key search by the processor's AES instructions, many keys at once: aes_lanes_aesni.cpp (4 keys),
// aes_lanes_vaes.cpp (8) and aes_lanes_vaes512.cpp (16) define an AesLanes each, from one source (aes_lanes_code.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpcipher::search::cpu {

inline constexpr std::size_t most_aes_loop_bits = 12;

// What one search has in common: constant while it runs. Words are as they lie in memory, the first byte lowest.
struct AesPlan {
  std::uint32_t in[4];
  int column;              // of the block, 0 to 3, that is compared
  std::uint32_t expected;  // of that column, where mask has ones
  std::uint32_t mask;
  bool decrypt;
  std::size_t loop_bits;
  std::uint8_t loop_words[most_aes_loop_bits];  // the key word that each loop bit is in, and its place there
  std::uint32_t loop_masks[most_aes_loop_bits];
};

struct AesLanes {
  const char* name;
  std::size_t lanes;

  // By key words, 4, 6 or 8 -> 0, 1, 2. Tests a block: keys are `lanes` keys, one after the other, in which the loop
  // bits are zero. Writes (lane << loop_bits | loop) of each key whose column agrees to candidates, which has room for
  // all; returns how many. What it derives from keys lies in registers and on the stack, which it wipes.
  std::size_t (*search[3])(const AesPlan& plan, const std::uint8_t* keys, std::uint32_t* candidates);
};

#if defined(__x86_64__)
extern const AesLanes aes_lanes_aesni;
extern const AesLanes aes_lanes_vaes;
extern const AesLanes aes_lanes_vaes512;
#endif

// Those that this processor can run, the fastest first; may be empty.
std::span<const AesLanes* const> aes_lanes_list();

}  // namespace warpcipher::search::cpu
