// SPDX-License-Identifier: Apache-2.0
// AES key search by the processor's AES instructions, many keys at once: aes_lanes_aesni.cpp (4 keys),
// aes_lanes_vaes.cpp (8) and aes_lanes_vaes512.cpp (16) define an AesLanes each, from one source (aes_lanes_code.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpcipher::search::cpu {

inline constexpr std::size_t most_aes_loop_bits = 12;

// What does not change during a search. Words are as in memory, the first byte lowest.
struct AesPlan {
  std::uint32_t in[4];
  int column;              // the column of the block that is compared, 0 to 3
  std::uint32_t expected;  // of that column, where mask has ones
  std::uint32_t mask;
  bool decrypt;
  std::size_t loop_bits;
  std::uint8_t loop_words[most_aes_loop_bits];  // the key word of each loop bit
  std::uint32_t loop_masks[most_aes_loop_bits];
};

struct AesLanes {
  const char* name;
  std::size_t lanes;

  // One function for each number of key words: 4, 6 or 8 has index 0, 1 or 2. It tests a block: `keys` are `lanes`
  // keys, one after another, whose loop bits are zero. For each key whose column matches, it writes (lane << loop_bits
  // | loop) to candidates, which has room for all. It returns their number. It wipes what it derives from keys.
  std::size_t (*search[3])(const AesPlan& plan, const std::uint8_t* keys, std::uint32_t* candidates);
};

#if defined(__x86_64__)
extern const AesLanes aes_lanes_aesni;
extern const AesLanes aes_lanes_vaes;
extern const AesLanes aes_lanes_vaes512;
#endif

// Those that this processor can run, the fastest first. May be empty.
std::span<const AesLanes* const> aes_lanes_list();

}  // namespace warpcipher::search::cpu
