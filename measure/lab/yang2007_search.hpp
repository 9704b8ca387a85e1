// SPDX-License-Identifier: Apache-2.0
// Bitsliced key search of yang2007, for host and GPU: 32 keys a word, a thread with its own range of keys.
//
// Keys are numbered. In each number
//
//   bits 0 to 4     the key's place in the words
//   bits 5 to 20    the iteration
//   bits 21 to 40   the thread
//   bits 41 on      the same for all of a job
//
// and bit j of a number is, of AES, bit j % 8 of byte j / 8 of the key; of DES, bit j % 7 + 1 of byte j / 7: bit 0 of
// each byte is parity, which DES does not use.
#pragma once

#include <cstdint>

#include "cipher/circuits.hpp"
#include "cipher/des_bitslice.hpp"
#include "core/host_device.hpp"

namespace warpcipher::lab::yang {

using Word = std::uint32_t;

inline constexpr unsigned iteration_bits = 16;  // as in the paper
inline constexpr unsigned thread_bits = 20;
inline constexpr unsigned iteration_at = 5;
inline constexpr unsigned thread_at = iteration_at + iteration_bits;
inline constexpr unsigned fixed_at = thread_at + thread_bits;

// All ones or all zeros.
WARPCIPHER_HD constexpr Word mask_of(std::uint32_t bits, unsigned place) {
  return Word{0} - (bits >> place & 1);
}

struct Range {
  std::uint32_t fixed[4];  // bits of the job's keys; those below fixed_at count for nothing
  std::uint32_t thread;
};

// Plane j of the 32 keys of an iteration. J is a constant where this is called.
WARPCIPHER_INLINE constexpr Word key_plane(unsigned j, std::uint32_t iteration, const Range& range) {
  constexpr Word places[5] = {0xaaaaaaaa, 0xcccccccc, 0xf0f0f0f0, 0xff00ff00, 0xffff0000};
  if (j < iteration_at) return places[j];
  if (j < thread_at) return mask_of(iteration, j - iteration_at);
  if (j < fixed_at) return mask_of(range.thread, j - thread_at);
  return mask_of(range.fixed[j / 32], j % 32);
}

// A thread writes where its last match is. keys: a bit for each key of that iteration, 0 for no match.
struct Match {
  std::uint32_t iteration;
  std::uint32_t keys;
};

// ---- DES (section 4) ------------------------------------------------------------------------------------------------

namespace des {

namespace cipher = warpcipher::des::bitslice;

inline constexpr unsigned key_bits = 56;

// Planes of the text before round 1 and after round 16, all ones or all zeros.
struct Known {
  Word left[32], right[32];
  Word left_behind[32], right_behind[32];
};

// The number's bit that is bit I of the subkey of round R.
template <int R, int I>
inline constexpr int number_bit = [] {
  const int plane = cipher::plane_of_position(cipher::subkey_positions[cipher::subkey_bits * R + I]);
  return 7 * (plane / 8) + plane % 8 - 1;
}();

template <int R>
struct Subkey {
  const Word (&planes)[key_bits];
  template <int I>
  WARPCIPHER_INLINE constexpr Word bit() const {
    return planes[number_bit<R, I>];
  }
};

// The sixteen rounds one after the other, as each takes other planes of the key.
template <int R = 0>
WARPCIPHER_INLINE constexpr void rounds(Word (&left)[32], Word (&right)[32], const Word (&planes)[key_bits]) {
  if constexpr (R < cipher::rounds) {
    cipher::add_round(left, right, Subkey<R>{planes});
    rounds<R + 1>(right, left, planes);
  }
}

// IncrementKey: bit-serial addition on the planes of the iteration.
WARPCIPHER_INLINE constexpr void increment(Word (&planes)[key_bits]) {
  Word carry = ~Word{0};
  WARPCIPHER_UNROLL
  for (unsigned j = iteration_at; j < thread_at; ++j) {
    const Word before = planes[j];
    planes[j] = before ^ carry;
    carry &= before;
  }
}

// CheckResult: a one for each key that makes the ciphertext of the plaintext.
WARPCIPHER_INLINE constexpr Word check(const Word (&left)[32], const Word (&right)[32], const Known& known) {
  Word match = ~Word{0};
  WARPCIPHER_UNROLL
  for (unsigned i = 0; i < 32; ++i) {
    match &= ~(left[i] ^ known.left_behind[i]);
    match &= ~(right[i] ^ known.right_behind[i]);
  }
  return match;
}

WARPCIPHER_INLINE constexpr Match search(const Known& known, const Range& range, std::uint32_t iterations) {
  Word planes[key_bits] = {};
  WARPCIPHER_UNROLL
  for (unsigned j = 0; j < key_bits; ++j) planes[j] = key_plane(j, 0, range);
  Match found{0, 0};
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (std::uint32_t iteration = 0; iteration < iterations; ++iteration) {
    Word left[32] = {};
    Word right[32] = {};
    WARPCIPHER_UNROLL
    for (unsigned i = 0; i < 32; ++i) {
      left[i] = known.left[i];
      right[i] = known.right[i];
    }
    rounds(left, right, planes);
    const Word match = check(left, right, known);
    if (match != 0) found = {iteration, match};
    increment(planes);
  }
  return found;
}

}  // namespace des

// ---- AES-128 (section 5) --------------------------------------------------------------------------------------------

namespace aes {

// Byte 4 c + r of a block is row r of column c; [byte][bit].
using State = Word[16][8];

inline constexpr unsigned rounds = 10;

// Planes of plaintext and ciphertext, all ones or all zeros.
struct Known {
  State plaintext, ciphertext;
};

WARPCIPHER_INLINE constexpr void substitute_bytes(State& s) {
  WARPCIPHER_UNROLL
  for (unsigned b = 0; b < 16; ++b) circuits::aes_sbox(s[b]);
}

WARPCIPHER_INLINE constexpr void shift_rows(State& s) {
  WARPCIPHER_UNROLL
  for (unsigned r = 1; r < 4; ++r) {
    WARPCIPHER_UNROLL
    for (unsigned j = 0; j < 8; ++j) {
      const Word row[4] = {s[r][j], s[4 + r][j], s[8 + r][j], s[12 + r][j]};
      WARPCIPHER_UNROLL
      for (unsigned c = 0; c < 4; ++c) s[4 * c + r][j] = row[(c + r) % 4];
    }
  }
}

// b_r = 2 (a_r + a_r+1) + a_r+1 + (a_r+2 + a_r+3), column by column in place.
WARPCIPHER_INLINE constexpr void mix_columns(State& s) {
  WARPCIPHER_UNROLL
  for (unsigned c = 0; c < 16; c += 4) {
    Word sums[4][8] = {};
    WARPCIPHER_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      WARPCIPHER_UNROLL
      for (unsigned j = 0; j < 8; ++j) sums[r][j] = s[c + r][j] ^ s[c + (r + 1) % 4][j];
    }
    const Word first[8] = {s[c][0], s[c][1], s[c][2], s[c][3], s[c][4], s[c][5], s[c][6], s[c][7]};
    WARPCIPHER_UNROLL
    for (unsigned r = 0; r < 4; ++r) {
      WARPCIPHER_UNROLL
      for (unsigned j = 0; j < 8; ++j) {
        const Word next = r < 3 ? s[c + (r + 1) % 4][j] : first[j];
        Word sum = sums[r][(j + 7) % 8] ^ next ^ sums[(r + 2) % 4][j];
        if (j == 1 || j == 3 || j == 4) sum ^= sums[r][7];  // modulo x^8 + x^4 + x^3 + x + 1
        s[c + r][j] = sum;
      }
    }
  }
}

WARPCIPHER_INLINE constexpr void add(State& s, const State& other) {
  WARPCIPHER_UNROLL
  for (unsigned b = 0; b < 16; ++b) {
    WARPCIPHER_UNROLL
    for (unsigned j = 0; j < 8; ++j) s[b][j] ^= other[b][j];
  }
}

// Makes the next round key of 32 keys, row by row (the paper's transposed key array): only one S-box a row. Planes:
// planes.get(i) and planes.set(i, x) are plane i of the round key. each(byte, bit, x) gets every new plane.
template <class Planes, class Each>
WARPCIPHER_INLINE constexpr void next_round_key(Planes& planes, unsigned round, const Each& each) {
  const std::uint32_t constant = round < 9 ? 1u << (round - 1) : round == 9 ? 0x1bu : 0x36u;
  Word old[8] = {};  // row 0 of the last column, which row 3 needs when it is gone
  WARPCIPHER_UNROLL
  for (unsigned j = 0; j < 8; ++j) old[j] = planes.get(8 * 12 + j);
  WARPCIPHER_UNROLL
  for (unsigned r = 0; r < 4; ++r) {
    Word sum[8] = {};
    WARPCIPHER_UNROLL
    for (unsigned j = 0; j < 8; ++j) sum[j] = r < 3 ? planes.get(8 * (13 + r) + j) : old[j];
    circuits::aes_sbox(sum);
    if (r == 0) {
      WARPCIPHER_UNROLL
      for (unsigned j = 0; j < 8; ++j) sum[j] ^= mask_of(constant, j);
    }
    WARPCIPHER_UNROLL
    for (unsigned b = r; b < 16; b += 4) {
      WARPCIPHER_UNROLL
      for (unsigned j = 0; j < 8; ++j) {
        sum[j] ^= planes.get(8 * b + j);
        planes.set(8 * b + j, sum[j]);
        each(b, j, sum[j]);
      }
    }
  }
}

// The schedule computed on the fly. planes: the 128 of the round key.
template <class Planes>
struct OnTheFly {
  Planes planes;

  WARPCIPHER_INLINE constexpr void start(State& s, std::uint32_t iteration, const Range& range) {
    WARPCIPHER_UNROLL
    for (unsigned i = 0; i < 128; ++i) {
      const Word plane = key_plane(i, iteration, range);
      planes.set(i, plane);
      s[i / 8][i % 8] ^= plane;
    }
  }

  WARPCIPHER_INLINE constexpr void add(State& s, unsigned round) {
    next_round_key(planes, round, [&](unsigned b, unsigned j, Word plane) { s[b][j] ^= plane; });
  }
};

// The schedule made in advance, in memory: plane i of round key r is at(128 r + i). The keys are from iteration 0,
// and the iteration's number is added to the first bytes of the plaintext instead, so that each iteration still
// encrypts something else.
template <class At>
struct InAdvance {
  At at;

  WARPCIPHER_INLINE constexpr void start(State& s, std::uint32_t iteration, const Range&) {
    WARPCIPHER_UNROLL
    for (unsigned i = 0; i < iteration_bits; ++i) s[i / 8][i % 8] ^= mask_of(iteration, i);
    add(s, 0);
  }

  WARPCIPHER_INLINE constexpr void add(State& s, unsigned round) {
    WARPCIPHER_UNROLL
    for (unsigned i = 0; i < 128; ++i) s[i / 8][i % 8] ^= at(128 * round + i);
  }
};

WARPCIPHER_INLINE constexpr Word check(const State& s, const Known& known) {
  Word match = ~Word{0};
  WARPCIPHER_UNROLL
  for (unsigned b = 0; b < 16; ++b) {
    WARPCIPHER_UNROLL
    for (unsigned j = 0; j < 8; ++j) match &= ~(s[b][j] ^ known.ciphertext[b][j]);
  }
  return match;
}

template <class Keys>
WARPCIPHER_INLINE constexpr Match search(Keys& keys, const Known& known, const Range& range, std::uint32_t iterations) {
  Match found{0, 0};
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (std::uint32_t iteration = 0; iteration < iterations; ++iteration) {
    State s = {};
    add(s, known.plaintext);
    keys.start(s, iteration, range);
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (unsigned round = 1; round <= rounds; ++round) {
      substitute_bytes(s);
      shift_rows(s);
      if (round < rounds) mix_columns(s);
      keys.add(s, round);
    }
    const Word match = check(s, known);
    if (match != 0) found = {iteration, match};
  }
  return found;
}

}  // namespace aes

}  // namespace warpcipher::lab::yang
