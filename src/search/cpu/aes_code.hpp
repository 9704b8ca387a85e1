// SPDX-License-Identifier: Apache-2.0
// AES key search by AES instructions. All of it is in an unnamed namespace or inlined by force, for the reason that
// cipher/simd/128.hpp gives.
//
// Key schedules are computed by words: element i of a vector is a word of key i, so that one XOR of KeyExpansion (FIPS
// 197, section 5.2) works for all keys. For a round, four such vectors are transposed, 4 by 4 in each 128-bit lane,
// into four vectors of round keys: lane l of vector j has the round key of key 4 l + j; its state is in the same lane.
// SubWord is AESENCLAST; the bytes are permuted beforehand, and its ShiftRows moves them back.
#pragma once

#include <cstring>

#include "cipher/simd/128.hpp"
#include "core/host_device.hpp"
#include "search/cpu/lanes.hpp"

namespace warpcipher::search::cpu {
namespace {

template <class Simd, int KeyWords>
struct AesCode {
  using Vector = typename Simd::Vector;
  static constexpr int lanes = Simd::words;
  static constexpr int rounds = KeyWords + 6;
  static constexpr int schedule_words = 4 * (rounds + 1);

  struct Masks {
    Vector rotated;  // RotWord, and the permutation that ShiftRows undoes
    Vector straight;
  };

  static WARPCIPHER_INLINE Masks make_masks() {
    alignas(16) std::uint8_t rotated[16];
    alignas(16) std::uint8_t straight[16];
    for (int column = 0; column < 4; ++column) {
      for (int row = 0; row < 4; ++row) {
        const int from = 4 * ((column - row) & 3);
        rotated[4 * column + row] = static_cast<std::uint8_t>(from + ((row + 1) & 3));
        straight[4 * column + row] = static_cast<std::uint8_t>(from + row);
      }
    }
    return {Simd::from_block(_mm_load_si128(reinterpret_cast<const __m128i*>(rotated))),
            Simd::from_block(_mm_load_si128(reinterpret_cast<const __m128i*>(straight)))};
  }

  // Word i of all schedules, from the words before it.
  static WARPCIPHER_INLINE void expand_word(Vector* words, int i, const Masks& masks) {
    constexpr std::uint8_t round_constants[11] = {0, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36};
    if (i < KeyWords) return;
    const Vector before = words[i - KeyWords];
    if (i % KeyWords == 0) {
      const Vector constant = Simd::broadcast(round_constants[i / KeyWords]);
      words[i] = Simd::encrypt_last(Simd::shuffle(words[i - 1], masks.rotated), before ^ constant);
    } else if (KeyWords == 8 && i % 8 == 4) {
      words[i] = Simd::encrypt_last(Simd::shuffle(words[i - 1], masks.straight), before);
    } else {
      words[i] = before ^ words[i - 1];
    }
  }

  struct State {
    Vector v[4];
  };

  static WARPCIPHER_INLINE State transpose(Vector w0, Vector w1, Vector w2, Vector w3) {
    State made{{w0, w1, w2, w3}};
    simd::transpose_words<Simd>(made.v);
    return made;
  }

  // One column of all blocks, by words.
  static WARPCIPHER_INLINE Vector column_of(const State& state, int column) {
    const State words = transpose(state.v[0], state.v[1], state.v[2], state.v[3]);
    if (column < 2) return column == 0 ? words.v[0] : words.v[1];
    return column == 2 ? words.v[2] : words.v[3];
  }

  static WARPCIPHER_INLINE State add_words(const AesPlan& plan, const Vector* words) {
    return transpose(words[0] ^ Simd::broadcast(plan.in[0]), words[1] ^ Simd::broadcast(plan.in[1]),
                     words[2] ^ Simd::broadcast(plan.in[2]), words[3] ^ Simd::broadcast(plan.in[3]));
  }

  // The compared column of the ciphertexts of plan.in.
  static WARPCIPHER_INLINE Vector encrypt(const AesPlan& plan, Vector* words, const Masks& masks) {
    State state = add_words(plan, words);
#pragma GCC unroll 16
    for (int round = 1; round < rounds; ++round) {
#pragma GCC unroll 4
      for (int i = 4 * round; i < 4 * round + 4; ++i) expand_word(words, i, masks);
      const Vector* w = words + 4 * round;
      const State key = transpose(w[0], w[1], w[2], w[3]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) state.v[j] = Simd::encrypt_round(state.v[j], key.v[j]);
    }
#pragma GCC unroll 4
    for (int i = 4 * rounds; i < schedule_words; ++i) expand_word(words, i, masks);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) state.v[j] = Simd::encrypt_last(state.v[j], Vector{});
    return column_of(state, plan.column) ^ words[4 * rounds + plan.column];
  }

  // The compared column of the plaintexts of plan.in. The inverse cipher of section 5.3. InvMixColumns by itself is
  // AESDEC after AESENCLAST: their other steps cancel.
  static WARPCIPHER_INLINE Vector decrypt(const AesPlan& plan, Vector* words, const Masks& masks) {
#pragma GCC unroll 64
    for (int i = KeyWords; i < schedule_words; ++i) expand_word(words, i, masks);
    State state = add_words(plan, words + 4 * rounds);
    for (int round = rounds - 1; round > 0; --round) {
      const Vector* w = words + 4 * round;
      const State key = transpose(w[0], w[1], w[2], w[3]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const Vector sum = Simd::decrypt_last(state.v[j], key.v[j]);
        state.v[j] = Simd::decrypt_round(Simd::encrypt_last(sum, Vector{}), Vector{});
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) state.v[j] = Simd::decrypt_last(state.v[j], Vector{});
    return column_of(state, plan.column) ^ words[plan.column];
  }

  template <bool Decrypt>
  static std::size_t search_way(const AesPlan& plan, const std::uint8_t* keys, std::uint32_t* candidates) {
    struct Work {
      Vector key[KeyWords];
      Vector words[schedule_words];
      std::uint32_t gathered[lanes];
    };
    alignas(64) Work work;
    for (int word = 0; word < KeyWords; ++word) {
      for (int lane = 0; lane < lanes; ++lane) {
        std::memcpy(&work.gathered[lane], keys + 4 * (KeyWords * lane + word), 4);
      }
      work.key[word] = Simd::load(reinterpret_cast<const std::uint8_t*>(work.gathered));
    }
    const Masks masks = make_masks();
    const Vector expected = Simd::broadcast(plan.expected & plan.mask);
    const Vector mask = Simd::broadcast(plan.mask);
    std::size_t found = 0;
    const std::uint32_t count = std::uint32_t{1} << plan.loop_bits;
    for (std::uint32_t step = 0; step < count; ++step) {
      // In the order of a Gray code: one key bit changes in each step.
      const std::uint32_t loop = step ^ step >> 1;
      if (step > 0) {
        const int changed = __builtin_ctz(step);
        Vector& word = work.key[plan.loop_words[changed]];
        word = word ^ Simd::broadcast(plan.loop_masks[changed]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < KeyWords; ++i) work.words[i] = work.key[i];
      const Vector column = Decrypt ? decrypt(plan, work.words, masks) : encrypt(plan, work.words, masks);
      std::uint32_t hits = Simd::equal_words(column & mask, expected);
      for (; hits != 0; hits &= hits - 1) {
        const auto lane = static_cast<std::uint32_t>(__builtin_ctz(hits));
        candidates[found++] = lane << plan.loop_bits | loop;
      }
    }
    std::memset(&work, 0, sizeof work);
    __asm__ __volatile__("" : : "r"(&work) : "memory");
    return found;
  }

  static std::size_t search(const AesPlan& plan, const std::uint8_t* keys, std::uint32_t* candidates) {
    return plan.decrypt ? search_way<true>(plan, keys, candidates) : search_way<false>(plan, keys, candidates);
  }
};

template <class Simd>
constexpr AesSearch aes_search{
    Simd::name, Simd::words, {AesCode<Simd, 4>::search, AesCode<Simd, 6>::search, AesCode<Simd, 8>::search}};

}  // namespace
}  // namespace warpcipher::search::cpu
