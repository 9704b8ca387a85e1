// SPDX-License-Identifier: Apache-2.0
// The counters of GCM and GCM-SIV in vectors: a part of gcm_lanes_code.hpp. All of it is in an unnamed namespace, for
// the reason that aes_instructions.hpp gives.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "engine/cpu/ghash_sum.hpp"

namespace warpcipher::cpu {
namespace {

// The counters of the next vector. The 32 bits that count are the first word of a block: GCM's (inc32: SP 800-38D,
// section 6.2) has its bytes reversed for that, GCM-SIV's lies so.
template <class Lanes, bool Siv>
struct GcmCounters {
  using Vector = typename Lanes::Vector;

  Vector words;
  bool is_public;  // see GcmText

  [[gnu::always_inline]] void advance(int count) {
    words = Lanes::add_words(words, Lanes::from_block(_mm_set_epi32(0, 0, 0, count)));
  }

  // The counters as they lie, which are to be encrypted. Then counts on.
  template <std::size_t Count>
  [[gnu::always_inline]] void fill(Vector (&blocks)[Count]) {
    constexpr int counted = static_cast<int>(Lanes::blocks);
    if constexpr (adds_three<Lanes> && !Siv) {
      // While no carry leaves the last byte, counters are counted as they lie: bytes are moved where products are made.
      const auto carries = [&] {
        const int last = _mm_cvtsi128_si32(Lanes::first_of(words)) & 0xff;
        return last + counted * static_cast<int>(Count) > 256;
      };
      if (is_public && !carries()) {
        const Vector step = Lanes::from_block(_mm_set_epi32(counted << 24, 0, 0, 0));
        blocks[0] = Lanes::swap_bytes(words);
        for (std::size_t v = 1; v < Count; ++v) blocks[v] = Lanes::add_words(blocks[v - 1], step);
        advance(counted * static_cast<int>(Count));
        return;
      }
    }
    const Vector step = Lanes::from_block(_mm_set_epi32(0, 0, 0, counted));
    for (std::size_t v = 0; v < Count; ++v) {
      if constexpr (Siv) {
        blocks[v] = words;
      } else {
        blocks[v] = Lanes::swap_bytes(words);
      }
      words = Lanes::add_words(words, step);
    }
  }
};

}  // namespace
}  // namespace warpcipher::cpu
