// SPDX-License-Identifier: Apache-2.0
// The source that lanes_*.cpp compile, each for its own instruction set: AES-GCM (SP 800-38D) with several vectors of
// blocks in flight. All of it is in an unnamed namespace, for the reason that aes_instructions.hpp gives.
//
// GHASH works on blocks with their bytes reversed, whose bit i is the coefficient of x^(127 - i). A carry-less product
// of two such is the product times x, so each power of H is kept divided by x (shifted left by one bit, and reduced);
// reduction folds the low quarter of the 256 bits twice (Gueron and Kounavis 2010, with the folding by products of
// Gueron 2012). Products of a group are added up before they are reduced once:
//
//   (hash + X_1) H^n + X_2 H^(n-1) + ... + X_n H
#pragma once

#include <immintrin.h>

#include <cstring>

#include "engine/cpu/gcm_lanes.hpp"
#include "engine/cpu/lane_rounds.hpp"

namespace warpcipher::cpu {
namespace {

inline __m128i swap_halves(__m128i a) { return _mm_shuffle_epi32(a, 0x4e); }
inline __m128i add(__m128i a, __m128i b) { return _mm_xor_si128(a, b); }

// x^128 + x^7 + x^2 + x + 1 with its bits reversed, without x^0.
inline __m128i polynomial() { return _mm_set_epi64x(static_cast<long long>(0xc200000000000000u), 1); }

// The 256-bit sum high:low with `middle` across them, reduced.
inline __m128i reduce(__m128i low, __m128i middle, __m128i high) {
  middle = add(middle, add(swap_halves(low), _mm_clmulepi64_si128(polynomial(), low, 0x01)));
  return add(high, add(swap_halves(middle), _mm_clmulepi64_si128(polynomial(), middle, 0x01)));
}

template <class Lanes>
struct GcmLanesCode {
  using Vector = typename Lanes::Vector;
  static constexpr std::size_t vectors = Lanes::vectors;
  static constexpr std::size_t vector_len = 16 * Lanes::blocks;
  static constexpr std::size_t group_len = vectors * vector_len;
  static_assert(vectors * Lanes::blocks <= GcmLaneKey::most_powers, "a group needs a power for each block");

  static void make_key(const std::uint8_t* key, std::size_t key_len, GcmLaneKey& made) {
    made.rounds = static_cast<int>(key_len / 4 + 6);
    expand_aes_key(key, key_len / 4, made.round_keys);
    const __m128i hash_key = reverse_block(encrypt_block(made, _mm_setzero_si128()));
    // Divided by x: one bit to the left, x^127 folded.
    auto low = static_cast<std::uint64_t>(_mm_cvtsi128_si64(hash_key));
    auto high = static_cast<std::uint64_t>(_mm_cvtsi128_si64(swap_halves(hash_key)));
    const std::uint64_t leaving = 0 - (high >> 63);
    high = (high << 1 | low >> 63) ^ (leaving & 0xc200000000000000u);
    low = low << 1 ^ (leaving & 1);
    const __m128i first = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
    __m128i power = first;
    std::memset(made.powers, 0, sizeof made.powers);
    std::memset(made.sums, 0, sizeof made.sums);
    for (std::size_t n = 1; n <= vectors * Lanes::blocks; ++n) {
      if (n > 1) power = multiply(power, first);
      store_block(made.powers[GcmLaneKey::most_powers - n], power);
      store_block(made.sums[GcmLaneKey::most_powers - n], add(power, swap_halves(power)));
    }
  }

  template <bool Encrypt>
  static void run(const GcmLaneKey& key, const GcmText& text, std::uint8_t (&tag)[16]) {
    const __m128i counter0 = load_block(text.counter0);
    const __m128i mask = encrypt_block(key, counter0);
    __m128i hash = _mm_setzero_si128();
    hash = hash_bytes(key, hash, text.aad, text.aad_len);
    Vector counter = Lanes::add_words(Lanes::from_block(reverse_block(counter0)), Lanes::counters());
    counter = Lanes::add_words(counter, Lanes::from_block(_mm_set_epi32(0, 0, 0, 1)));

    const std::uint8_t* in = text.in;
    std::uint8_t* out = text.out;
    std::size_t left = text.len;
    for (; left >= group_len; left -= group_len, in += group_len, out += group_len) {
      Vector blocks[vectors];
      make_key_stream(key, counter, blocks);
      Vector hashed[vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        const Vector before = Lanes::load(in + vector_len * v);
        const Vector after = Lanes::exclusive_or(before, blocks[v]);
        Lanes::store(out + vector_len * v, after);
        hashed[v] = Encrypt ? after : before;
      }
      hash = hash_group(key, hash, hashed);
    }
    if (left > 0) {
      Vector blocks[vectors];
      make_key_stream(key, counter, blocks);
      hash = run_rest<Encrypt>(key, hash, blocks, in, out, left);
    }
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(8 * text.aad_len), static_cast<long long>(8 * text.len));
    hash = multiply(add(hash, lengths), load_block(key.powers[GcmLaneKey::most_powers - 1]));
    store_block(tag, add(reverse_block(hash), mask));
  }

 private:
  static __m128i encrypt_block(const GcmLaneKey& key, __m128i block) {
    return transform_block<true>(key.round_keys, key.rounds, block);
  }

  // The next group of encrypted counters. `counter` has its bytes reversed, so that the 32 bits that count (inc32:
  // section 6.2) are the first word of a block.
  static void make_key_stream(const GcmLaneKey& key, Vector& counter, Vector (&blocks)[vectors]) {
    const Vector step = Lanes::from_block(_mm_set_epi32(0, 0, 0, static_cast<int>(Lanes::blocks)));
    for (std::size_t v = 0; v < vectors; ++v) {
      blocks[v] = Lanes::swap_bytes(counter);
      counter = Lanes::add_words(counter, step);
    }
    transform_vectors<Lanes, true>(key.round_keys, key.rounds, blocks);
  }

  // Sums of products that wait for their reduction: Karatsuba's three.
  struct Sum {
    Vector low, middle, high;

    void add_product(Vector x, const std::uint8_t* power, const std::uint8_t* power_sum) {
      const Vector factor = Lanes::load(power);
      low = Lanes::exclusive_or(low, Lanes::template multiply<0x00>(x, factor));
      high = Lanes::exclusive_or(high, Lanes::template multiply<0x11>(x, factor));
      middle = Lanes::exclusive_or(middle, Lanes::template multiply<0x00>(Lanes::exclusive_or(x, Lanes::swap_halves(x)),
                                                                          Lanes::load(power_sum)));
    }

    __m128i reduced() const {
      const __m128i a = Lanes::sum_of_blocks(low), c = Lanes::sum_of_blocks(high);
      return reduce(a, add(Lanes::sum_of_blocks(middle), add(a, c)), c);
    }
  };

  static __m128i multiply(__m128i a, __m128i b) {
    const __m128i middle = add(_mm_clmulepi64_si128(a, b, 0x01), _mm_clmulepi64_si128(a, b, 0x10));
    return reduce(_mm_clmulepi64_si128(a, b, 0x00), middle, _mm_clmulepi64_si128(a, b, 0x11));
  }

  // The hash after `used` vectors, which hold `count` blocks; what is behind those is zero.
  static __m128i hash_vectors(const GcmLaneKey& key, __m128i hash, const Vector* text, std::size_t used,
                              std::size_t count) {
    const Vector zero = Lanes::exclusive_or(text[0], text[0]);
    alignas(64) std::uint8_t start[64] = {};
    store_block(start, hash);
    Sum sum{zero, zero, zero};
    const std::size_t place = GcmLaneKey::most_powers - count;
    for (std::size_t v = 0; v < used; ++v) {
      Vector x = Lanes::swap_bytes(text[v]);
      if (v == 0) x = Lanes::exclusive_or(x, Lanes::load(start));
      sum.add_product(x, key.powers[place + Lanes::blocks * v], key.sums[place + Lanes::blocks * v]);
    }
    forget(start, sizeof start);
    return sum.reduced();
  }

  static __m128i hash_group(const GcmLaneKey& key, __m128i hash, const Vector (&text)[vectors]) {
    return hash_vectors(key, hash, text, vectors, vectors * Lanes::blocks);
  }

  // Less than a group of text, under the key stream `blocks`.
  template <bool Encrypt>
  static __m128i run_rest(const GcmLaneKey& key, __m128i hash, const Vector (&blocks)[vectors], const std::uint8_t* in,
                          std::uint8_t* out, std::size_t len) {
    alignas(64) std::uint8_t text[group_len];
    const std::size_t used = (len + vector_len - 1) / vector_len;
    copy_short(text, in, len);
    std::memset(text + len, 0, vector_len * used - len);
    Vector hashed[vectors];
    for (std::size_t v = 0; v < used; ++v) {
      hashed[v] = Lanes::load(text + vector_len * v);
      Lanes::store(text + vector_len * v, Lanes::exclusive_or(hashed[v], blocks[v]));
    }
    copy_short(out, text, len);
    if constexpr (Encrypt) {
      std::memset(text + len, 0, vector_len * used - len);
      for (std::size_t v = 0; v < used; ++v) hashed[v] = Lanes::load(text + vector_len * v);
    }
    forget(text, vector_len * used);
    return hash_vectors(key, hash, hashed, used, (len + 15) / 16);
  }

  // GHASH of bytes, filled up with zeros to a block.
  static __m128i hash_bytes(const GcmLaneKey& key, __m128i hash, const std::uint8_t* bytes, std::size_t len) {
    while (len > 0) {
      const std::size_t part = len < group_len ? len : group_len;
      const std::size_t used = (part + vector_len - 1) / vector_len;
      alignas(64) std::uint8_t padded[group_len];
      copy_short(padded, bytes, part);
      std::memset(padded + part, 0, vector_len * used - part);
      Vector text[vectors];
      for (std::size_t v = 0; v < used; ++v) text[v] = Lanes::load(padded + vector_len * v);
      hash = hash_vectors(key, hash, text, used, (part + 15) / 16);
      bytes += part;
      len -= part;
    }
    return hash;
  }
};

template <class Lanes>
constexpr GcmLanes make_gcm_lanes(const char* name) {
  using Code = GcmLanesCode<Lanes>;
  return {name, Code::make_key, Code::template run<true>, Code::template run<false>};
}

}  // namespace
}  // namespace warpcipher::cpu
