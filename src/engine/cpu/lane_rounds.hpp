// SPDX-License-Identifier: Apache-2.0
// The rounds of AES over vectors in flight: what gcm_lanes_code.hpp and aes_lanes_code.hpp share. All of it is in an
// unnamed namespace, for the reason that aes_instructions.hpp gives.
#pragma once

#include "engine/cpu/aes_instructions.hpp"

namespace warpcipher::cpu {
namespace {

using RoundKeys = std::uint8_t[15][16];

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

// The same vectors, stored past the cache, at multiples of 64 bytes. A text that no cache holds is else read from
// memory before it is overwritten.
template <class Lanes>
struct PastCache : Lanes {
  using Past = Lanes;
  static void store(std::uint8_t* p, typename Lanes::Vector v) { Lanes::store_past_cache(p, v); }
};

template <class Lanes>
inline constexpr bool is_past_cache = requires { typename Lanes::Past; };

template <class AnyLanes>
struct InCache {
  using Lanes = AnyLanes;
};
template <class AnyLanes>
struct InCache<PastCache<AnyLanes>> {
  using Lanes = AnyLanes;
};

// Such stores are ordered with others by a fence alone.
template <class Lanes>
inline void end_stores() {
  if constexpr (is_past_cache<Lanes>) _mm_sfence();
}

// Fetches a line of a text into the first cache, some groups before it is used: processors do it only within a page. 1
// to 2 KiB are equally good, 4 KiB gain half of it. Vectors of 512 bits: measured with no others.
template <class Lanes>
[[gnu::always_inline]] inline void fetch_ahead(const std::uint8_t* text) {
  if constexpr (sizeof(typename Lanes::Vector) == 64) {
    _mm_prefetch(reinterpret_cast<const char*>(text + 1536), _MM_HINT_T0);
  }
}

// At the end of what others call: their SSE instructions wait for registers whose upper halves are in use. Compilers
// see to that, but GCC 12 does not where a function took such a vector by value: on a Xeon, GCM of 65 to 511 bytes took
// 165 ns where it takes 40 to 70.
inline void leave_vectors() { _mm256_zeroupper(); }

template <class Lanes, bool Encrypt, std::size_t Count>
[[gnu::always_inline]] inline void run_round(typename Lanes::Vector (&blocks)[Count], const std::uint8_t* round_key) {
  const typename Lanes::Vector key = Lanes::from_block(load_block(round_key));
  for (auto& block : blocks) block = Encrypt ? Lanes::encrypt_round(block, key) : Lanes::decrypt_round(block, key);
}

// Calls meanwhile(r) in round r, from 1 to 9, for work that is to fill the gaps between the rounds. Nine rounds, those
// of AES-128, are unrolled: in a loop the compiler moves each block from register to register. last_key(v, key) is the
// last round key of vector v, or the sum of that and of a text.
template <class Lanes, bool Encrypt, std::size_t Count, class Meanwhile, class LastKey>
[[gnu::always_inline]] inline void transform_vectors(const RoundKeys& keys, int rounds,
                                                     typename Lanes::Vector (&blocks)[Count],
                                                     const Meanwhile& meanwhile, const LastKey& last_key) {
  typename Lanes::Vector key = Lanes::from_block(load_block(keys[0]));
  for (auto& block : blocks) block = Lanes::exclusive_or(block, key);
#pragma GCC unroll 9
  for (std::size_t r = 1; r < 10; ++r) {
    run_round<Lanes, Encrypt>(blocks, keys[r]);
    meanwhile(r);
  }
  for (int r = 10; r < rounds; ++r) run_round<Lanes, Encrypt>(blocks, keys[r]);
  key = Lanes::from_block(load_block(keys[rounds]));
  for (std::size_t v = 0; v < Count; ++v) {
    const auto last = last_key(v, key);
    blocks[v] = Encrypt ? Lanes::encrypt_last(blocks[v], last) : Lanes::decrypt_last(blocks[v], last);
  }
}

template <class Lanes, bool Encrypt, std::size_t Count, class Meanwhile>
[[gnu::always_inline]] inline void transform_vectors(const RoundKeys& keys, int rounds,
                                                     typename Lanes::Vector (&blocks)[Count],
                                                     const Meanwhile& meanwhile) {
  transform_vectors<Lanes, Encrypt>(keys, rounds, blocks, meanwhile,
                                    [](std::size_t, typename Lanes::Vector key) { return key; });
}

template <class Lanes, bool Encrypt, std::size_t Count>
[[gnu::always_inline]] inline void transform_vectors(const RoundKeys& keys, int rounds,
                                                     typename Lanes::Vector (&blocks)[Count]) {
  transform_vectors<Lanes, Encrypt>(keys, rounds, blocks, [](std::size_t) {});
}

}  // namespace
}  // namespace warpcipher::cpu
