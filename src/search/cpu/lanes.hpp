// SPDX-License-Identifier: Apache-2.0
// Key search by vector code, many keys at once. Its source (aes_code.hpp, des_meet_code.hpp) is compiled once for each
// instruction set, by src/instruction_sets/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpcipher::search::cpu {

// --- AES by the processor's instructions -----------------------------------------------------------------------------

inline constexpr std::size_t most_aes_loop_bits = 12;

// Constants of a search. Words are as in memory, the first byte lowest.
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

struct AesSearch {
  const char* name;
  std::size_t lanes;  // keys at a time

  // One function for each number of key words: 4, 6 or 8 has index 0, 1 or 2. It tests a block: `keys` are `lanes`
  // keys, one after another, whose loop bits are zero. For each key whose column matches, it writes (lane << loop_bits
  // | loop) to candidates, which has room for all. It returns their number. It wipes values derived from keys.
  std::size_t (*search[3])(const AesPlan& plan, const std::uint8_t* keys, std::uint32_t* candidates);
};

// --- DES, bitsliced, from both ends ----------------------------------------------------------------------------------

// From both ends of a fully known pair of blocks. The ciphertext gives R15. Rounds 16 and 15
// backwards and rounds 1 to 13 forwards both give R13. The first S-boxes of rounds 13 and 15 reject nearly every wrong
// key; each compares four bits. Rounds that depend on few loop bits are computed once for a block of keys, and looked
// up:
//
//   round 1             always: its S-boxes see known text and six key bits each
//   round 2             where no loop bit is in round 1's subkey, so that R1 is the same in the whole loop
//   round 16            always, as round 1
//   rounds 2 or 3 to 12 for each key
//   rounds 13 and 15    S-box by S-box, three of eight for nearly every key

inline constexpr std::size_t most_des_loop_bits = 8;

// The rounds (from 0) whose S-boxes are looked up.
inline constexpr int memo_count = 3;
inline constexpr int memo_rounds[memo_count] = {0, 1, 15};

// Constants of a search. Plain arrays: an inline function of the standard library must not be compiled
// for one instruction set and linked into all.
struct DesMeetPlan {
  std::uint64_t plaintext;   // load_le64
  std::uint64_t ciphertext;  // load_le64
  std::size_t loop_bits;
  std::uint8_t loop_planes[most_des_loop_bits];  // the key plane of each loop bit
  const std::uint8_t* subkey_planes;             // bitslice::subkey_planes
  bool memo_round2;                              // R1 is the same for the whole loop

  // For each of memo_rounds and each S-box: the loop bits in its subkey, and the position of its results among the
  // results of the round. Its results are 2^count sets of four planes.
  struct Box {
    std::uint8_t count;
    std::uint8_t bits[6];  // positions in loop_planes
    std::uint16_t offset;
  };
  Box boxes[memo_count][8];

  // The set for each value of the loop and each S-box.
  std::uint8_t sets[memo_count][1u << most_des_loop_bits][8];
};

// The most sets that a round can have: all loop bits in one S-box (which has six key bits), or spread over several.
inline constexpr std::size_t most_sets = (1u << 6) + 7 + 4;

// loop_bits: key bits from 0, the most significant of the first byte; at most most_des_loop_bits.
DesMeetPlan plan_des_meet(std::uint64_t plaintext, std::uint64_t ciphertext, std::span<const std::uint16_t> loop_bits);

struct DesMeetLanes {
  const char* name;
  std::size_t lanes;
  std::size_t workspace_len;  // bytes, aligned to 64

  // Tests a block: `keys` are `lanes` times 8 bytes whose loop bits are zero. For each key with a match in R13, it
  // writes (lane << loop_bits | loop) to candidates, which has room for all. It returns their number. It leaves secrets
  // in workspace.
  std::size_t (*search)(const DesMeetPlan& plan, const std::uint8_t* keys, void* workspace, std::uint32_t* candidates);
};

// --- lists -----------------------------------------------------------------------------------------------------------

// Code compiled for one instruction set (core/processor.hpp names them); nullptr: nothing of that cipher.
struct Lanes {
  const char* name;
  const AesSearch* aes = nullptr;
  const DesMeetLanes* des = nullptr;

  static const Lanes baseline, avx2, avx512, aesni, vaes, vaes512;
};

// Those that this processor can run, the fastest first. Of AES maybe none.
std::span<const AesSearch* const> aes_search_list();
std::span<const DesMeetLanes* const> des_meet_list();

}  // namespace warpcipher::search::cpu
