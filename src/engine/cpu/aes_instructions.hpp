// SPDX-License-Identifier: Apache-2.0
// What all files with AES instructions share. All of it is in an unnamed namespace: a function that the linker could
// merge with another file's copy might run instructions that the processor lacks.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace warpcipher::cpu {
namespace {

inline __m128i load_block(const std::uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline void store_block(std::uint8_t* p, __m128i block) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), block); }

// For lengths of some blocks: the compiler puts a string instruction in the place of memcpy, which takes 30 clocks to
// start.
[[gnu::always_inline]] inline void copy_short(std::uint8_t* to, const std::uint8_t* from, std::size_t len) {
  for (; len >= 16; len -= 16, to += 16, from += 16) store_block(to, load_block(from));
  if (len >= 8) {
    std::memcpy(to, from, 8);
    len -= 8;
    to += 8;
    from += 8;
  }
  for (std::size_t i = 0; i < len; ++i) to[i] = from[i];
}

inline void forget(void* data, std::size_t size) {
  std::memset(data, 0, size);
  __asm__ __volatile__("" : : "r"(data) : "memory");
}

// FIPS 197, section 5.2, for a key of key_words words. With four equal columns ShiftRows does nothing, and a last round
// under a key of zeros is the S-box.
inline void expand_aes_key(const std::uint8_t* key, std::size_t key_words, std::uint8_t (&round_keys)[15][16]) {
  const std::size_t rounds = key_words + 6;
  std::uint32_t words[60];
  std::memcpy(words, key, 4 * key_words);
  std::uint32_t round_constant = 1;
  for (std::size_t i = key_words; i < 4 * (rounds + 1); ++i) {
    std::uint32_t word = words[i - 1];
    const bool first = i % key_words == 0;
    if (first || (key_words == 8 && i % 8 == 4)) {
      const __m128i column = _mm_set1_epi32(static_cast<int>(first ? word >> 8 | word << 24 : word));
      word = static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_aesenclast_si128(column, _mm_setzero_si128())));
      if (first) word ^= round_constant;
      if (first) round_constant = (round_constant << 1) ^ (0x11bu * (round_constant >> 7));
    }
    words[i] = words[i - key_words] ^ word;
  }
  std::memcpy(round_keys, words, 16 * (rounds + 1));
  forget(words, sizeof words);
}

}  // namespace
}  // namespace warpcipher::cpu
