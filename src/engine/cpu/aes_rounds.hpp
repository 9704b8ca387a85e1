// SPDX-License-Identifier: Apache-2.0
// AES instructions on blocks and on vectors in flight, shared by aes_code.hpp, aes_serial_code.hpp and gcm_code.hpp.
// All of it is in an unnamed namespace, for the reason that cipher/simd/128.hpp gives.
#pragma once

#include "cipher/simd/128.hpp"

namespace warpcipher::cpu {
namespace {

using RoundKeys = std::uint8_t[15][16];

// --- blocks ----------------------------------------------------------------------------------------------------------

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
inline void expand_aes_key(const std::uint8_t* key, std::size_t key_words, RoundKeys& round_keys) {
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

inline __m128i reversing_bytes() { return _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
inline __m128i reverse_block(__m128i block) { return _mm_shuffle_epi8(block, reversing_bytes()); }

template <bool Encrypt>
__m128i transform_block(const RoundKeys& keys, int rounds, __m128i block) {
  block = _mm_xor_si128(block, load_block(keys[0]));
  for (int r = 1; r < rounds; ++r) {
    const __m128i key = load_block(keys[r]);
    block = Encrypt ? _mm_aesenc_si128(block, key) : _mm_aesdec_si128(block, key);
  }
  const __m128i key = load_block(keys[rounds]);
  return Encrypt ? _mm_aesenclast_si128(block, key) : _mm_aesdeclast_si128(block, key);
}

// --- vectors ---------------------------------------------------------------------------------------------------------

inline constexpr std::size_t vectors_in_flight = 8;

template <class Simd>
[[gnu::always_inline]] inline typename Simd::Vector reverse_blocks(typename Simd::Vector v) {
  return Simd::shuffle(v, Simd::from_block(reversing_bytes()));
}

// Stores the vectors of a text, or stores them past the cache, at multiples of their length: a text that no cache holds
// is else read from memory before it is overwritten. Code that stores past it calls end_stores() when all is stored.
template <class Simd, std::size_t Count>
[[gnu::always_inline]] inline void store_vectors(std::uint8_t* to, const typename Simd::Vector (&from)[Count],
                                                 bool past_cache) {
  constexpr std::size_t vector_len = 16 * Simd::blocks;
  if (past_cache) {
    for (std::size_t v = 0; v < Count; ++v) Simd::store_past_cache(to + vector_len * v, from[v]);
  } else {
    for (std::size_t v = 0; v < Count; ++v) Simd::store(to + vector_len * v, from[v]);
  }
}

// Only a fence orders stores past the cache with others.
inline void end_stores(bool past_cache) {
  if (past_cache) _mm_sfence();
}

// Fetches a line of a text into the first cache, some groups before it is used: processors do it only within a page. 1
// to 2 KiB are equally good, 4 KiB gain half of it. Vectors of 512 bits: measured with no others.
template <class Simd>
[[gnu::always_inline]] inline void fetch_ahead(const std::uint8_t* text) {
  if constexpr (sizeof(typename Simd::Vector) == 64) {
    _mm_prefetch(reinterpret_cast<const char*>(text + 1536), _MM_HINT_T0);
  }
}

// At the end of functions that others call: their SSE instructions wait for registers whose upper halves are in use.
// Compilers see to that, but GCC 12 does not where a function took such a vector by value: on a Xeon, GCM of 65 to 511
// bytes took 165 ns where it takes 40 to 70.
inline void leave_vectors() { _mm256_zeroupper(); }

template <class Simd, bool Encrypt, std::size_t Count>
[[gnu::always_inline]] inline void run_round(typename Simd::Vector (&blocks)[Count], const std::uint8_t* round_key) {
  const typename Simd::Vector key = Simd::from_block(load_block(round_key));
  for (auto& block : blocks) block = Encrypt ? Simd::encrypt_round(block, key) : Simd::decrypt_round(block, key);
}

// Calls meanwhile(r) in round r, from 1 to 9, for work that is to fill the gaps between the rounds. Nine rounds, those
// of AES-128, are unrolled: in a loop the compiler moves each block from register to register. last_key(v, key) is the
// last round key of vector v, or the sum of that and of a text.
template <class Simd, bool Encrypt, std::size_t Count, class Meanwhile, class LastKey>
[[gnu::always_inline]] inline void transform_vectors(const RoundKeys& keys, int rounds,
                                                     typename Simd::Vector (&blocks)[Count], const Meanwhile& meanwhile,
                                                     const LastKey& last_key) {
  typename Simd::Vector key = Simd::from_block(load_block(keys[0]));
  for (auto& block : blocks) block = Simd::exclusive_or(block, key);
#pragma GCC unroll 9
  for (std::size_t r = 1; r < 10; ++r) {
    run_round<Simd, Encrypt>(blocks, keys[r]);
    meanwhile(r);
  }
  for (int r = 10; r < rounds; ++r) run_round<Simd, Encrypt>(blocks, keys[r]);
  key = Simd::from_block(load_block(keys[rounds]));
  for (std::size_t v = 0; v < Count; ++v) {
    const auto last = last_key(v, key);
    blocks[v] = Encrypt ? Simd::encrypt_last(blocks[v], last) : Simd::decrypt_last(blocks[v], last);
  }
}

template <class Simd, bool Encrypt, std::size_t Count, class Meanwhile>
[[gnu::always_inline]] inline void transform_vectors(const RoundKeys& keys, int rounds,
                                                     typename Simd::Vector (&blocks)[Count],
                                                     const Meanwhile& meanwhile) {
  transform_vectors<Simd, Encrypt>(keys, rounds, blocks, meanwhile,
                                   [](std::size_t, typename Simd::Vector key) { return key; });
}

template <class Simd, bool Encrypt, std::size_t Count>
[[gnu::always_inline]] inline void transform_vectors(const RoundKeys& keys, int rounds,
                                                     typename Simd::Vector (&blocks)[Count]) {
  transform_vectors<Simd, Encrypt>(keys, rounds, blocks, [](std::size_t) {});
}

}  // namespace
}  // namespace warpcipher::cpu
