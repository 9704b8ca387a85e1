// SPDX-License-Identifier: Apache-2.0
// AES-GCM (SP 800-38D) and AES-GCM-SIV (RFC 8452) with several vectors of blocks in flight. All of it is in an unnamed
// namespace, for the reason that cipher/simd/128.hpp gives.
//
// GHASH works on blocks with their bytes reversed, whose bit i is the coefficient of x^(127 - i). A carry-less product
// of two such is the product times x, so each power of H is kept divided by x (shifted left by one bit, and reduced);
// reduction folds the low quarter of the 256 bits twice (Gueron and Kounavis 2010, with the folding by products of
// Gueron 2012). Products of a group are added up before they are reduced once:
//
//   (hash + X_1) H^n + X_2 H^(n-1) + ... + X_n H
//
// The products of a group run between the rounds of AES of the next one, or of its own if the input is hashed. A
// short text takes no more vectors than it fills, and only the part that does not fill a vector goes through memory:
// bytes that are stored in parts and loaded as a vector wait for the stores.
//
// POLYVAL is GHASH of blocks with their bytes reversed, under x H (RFC 8452, appendix A). So its blocks are taken as
// they lie, and its H, divided by that x, is the first power as it lies.
#pragma once

#include "engine/cpu/aes_rounds.hpp"
#include "engine/cpu/ghash_sum.hpp"
#include "engine/cpu/lanes.hpp"

namespace warpcipher::cpu {
namespace {

enum class HashedText { input, output, none };

// The counters of the next vector. The 32 bits that count are the first word of a block: GCM's (inc32: SP 800-38D,
// section 6.2) has its bytes reversed for that, GCM-SIV's lies so.
template <class Simd, bool Siv>
struct GcmCounters {
  using Vector = typename Simd::Vector;

  Vector words;
  bool is_public;  // see GcmText

  [[gnu::always_inline]] void advance(int count) {
    words = Simd::add_words(words, Simd::from_block(_mm_set_epi32(0, 0, 0, count)));
  }

  // The counters as they lie, which are to be encrypted. Then counts on.
  template <std::size_t Count>
  [[gnu::always_inline]] void fill(Vector (&blocks)[Count]) {
    constexpr int counted = static_cast<int>(Simd::blocks);
    if constexpr (adds_three<Simd> && !Siv) {
      // While no carry leaves the last byte, counters are counted as they lie: bytes are moved where products are made.
      const auto carries = [&] {
        const int last = _mm_cvtsi128_si32(Simd::first_of(words)) & 0xff;
        return last + counted * static_cast<int>(Count) > 256;
      };
      if (is_public && !carries()) {
        const Vector step = Simd::from_block(_mm_set_epi32(counted << 24, 0, 0, 0));
        blocks[0] = reverse_blocks<Simd>(words);
        for (std::size_t v = 1; v < Count; ++v) blocks[v] = Simd::add_words(blocks[v - 1], step);
        advance(counted * static_cast<int>(Count));
        return;
      }
    }
    const Vector step = Simd::from_block(_mm_set_epi32(0, 0, 0, counted));
    for (std::size_t v = 0; v < Count; ++v) {
      if constexpr (Siv) {
        blocks[v] = words;
      } else {
        blocks[v] = reverse_blocks<Simd>(words);
      }
      words = Simd::add_words(words, step);
    }
  }
};

// A lane is a block of each vector: with four blocks in a vector, block 0, 4, 8 ... of a text, or 1, 5, 9 ... A group
// multiplies all blocks of a vector by the same power of H, the first's, and a sum for each lane is carried on:
//
//   (lane's sum + X_1) H^32 + X_5 H^28 + ... + X_29 H^4       in the lane of blocks 1, 5, 9 ...
//
// so that no group waits for the sum of its lanes. Lane i is then still to be divided by H^i. The last
// group, which is not one of this loop, does that: it multiplies each block, and the sum that is added to it, by the
// power that is the block's own.
//
// Whole groups, two or more, of `Count` vectors. Gives the sums of the lanes, after `sums`, and counts on. Of the texts
// that it makes, all but the last group are hashed, and that is given at `waiting`; or the texts that it takes are.
template <class Simd, bool Siv, bool HashesInput, bool PastCache, std::size_t Count>
[[gnu::always_inline]] inline typename Simd::Vector run_by_lane(const GcmLaneKey& key, GcmCounters<Simd, Siv>& counters,
                                                                typename Simd::Vector sums, const std::uint8_t* in,
                                                                std::uint8_t* out, std::size_t len,
                                                                typename Simd::Vector (&waiting)[Count]) {
  using Vector = typename Simd::Vector;
  constexpr std::size_t vector_len = 16 * Simd::blocks, group_len = Count * vector_len;
  GcmCounters<Simd, Siv> next = counters;  // in a register
  for (std::size_t done = 0; done < len; done += group_len, in += group_len, out += group_len) {
    Vector blocks[Count];
    next.fill(blocks);
    // The text is added with the last round key, of which the rounds do not wait.
    const auto last_key = [&](std::size_t v, Vector last) {
      return Simd::exclusive_or(last, HashesInput ? waiting[v] : Simd::load(in + vector_len * v));
    };
    if (!HashesInput && done == 0) {
      transform_vectors<Simd, true>(key.round_keys, key.rounds, blocks, [](std::size_t) {}, last_key);
    } else {
      GhashSum<Simd> sum = GhashSum<Simd>::of_nothing();
      const auto add_product = [&](std::size_t r) {
        if (r > Count) return;
        fetch_ahead<Simd>(in + vector_len * (r - 1));
        const std::size_t v = r % Count;  // the first vector, which waits for the sums, comes last
        const std::size_t place = GcmLaneKey::most_powers - Simd::blocks * (Count - v);
        if constexpr (HashesInput) waiting[v] = Simd::load(in + vector_len * v);
        Vector x = waiting[v];
        if constexpr (!Siv) x = reverse_blocks<Simd>(x);
        if (v == 0) x = Simd::exclusive_or(x, sums);
        if constexpr (!adds_three<Simd>) {
          sum.template add_product<true>(x, key, place);
        } else if (r % 2 != 0) {
          sum.template take_product<true>(x, key, place);
        } else {
          sum.template add_taken<true>(x, key, place);
        }
      };
      transform_vectors<Simd, true>(key.round_keys, key.rounds, blocks, add_product, last_key);
      sums = sum.reduced_by_lane();
    }
    for (std::size_t v = 0; v < Count; ++v) {
      PastCache ? Simd::store_past_cache(out + vector_len * v, blocks[v])
                : Simd::store(out + vector_len * v, blocks[v]);
      if constexpr (!HashesInput) waiting[v] = blocks[v];
    }
  }
  end_stores(PastCache);
  counters = next;
  return sums;
}

// Siv: GCM-SIV in the place of GCM, which takes blocks of hash and counters with their bytes in the other order.
template <class Simd, bool Siv>
struct GcmCode {
  using Vector = typename Simd::Vector;
  using Sum = GhashSum<Simd>;
  using Counters = GcmCounters<Simd, Siv>;
  static constexpr std::size_t vectors = vectors_in_flight;
  static constexpr std::size_t vector_len = 16 * Simd::blocks;
  static constexpr std::size_t group_len = vectors * vector_len;
  static constexpr std::size_t least_by_lane = 4 * group_len;  // shorter texts are slower by lane
  // From this length on it pays to make the first blocks apart, so that no store is of two lines or pages: 5% of 256
  // KiB.
  static constexpr std::size_t least_aligned = std::size_t{32} << 10;
  static_assert(vectors * Simd::blocks <= GcmLaneKey::most_powers, "a group needs a power for each block");

  static void make_key(const std::uint8_t* key, std::size_t key_len, GcmLaneKey& made) {
    expand_key(key, key_len, made);
    const __m128i hash_key = reverse_block(encrypt_block(made, _mm_setzero_si128()));
    // Divided by x: one bit to the left, x^127 folded.
    auto low = static_cast<std::uint64_t>(_mm_cvtsi128_si64(hash_key));
    auto high = static_cast<std::uint64_t>(_mm_cvtsi128_si64(swap_halves(hash_key)));
    const std::uint64_t leaving = 0 - (high >> 63);
    high = (high << 1 | low >> 63) ^ (leaving & 0xc200000000000000u);
    low = low << 1 ^ (leaving & 1);
    make_powers(_mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low)), made, most_in_flight);
  }

  template <bool Encrypt>
  static void run(const GcmLaneKey& key, const GcmText& text, std::uint8_t (&tag)[16]) {
    const __m128i counter0 = load_block(text.counter0);
    const __m128i mask = encrypt_block(key, counter0);
    __m128i hash = hash_bytes(key, _mm_setzero_si128(), text.aad, text.aad_len);
    const Vector counters0 = Simd::add_words(Simd::from_block(reverse_block(counter0)), Simd::counters());
    const Counters counter{Simd::add_words(counters0, Simd::from_block(_mm_set_epi32(0, 0, 0, 1))),
                           text.counter_is_public};
    constexpr HashedText hashed = Encrypt ? HashedText::output : HashedText::input;
    hash = run_text<hashed>(key, counter, hash, text.in, text.out, text.len, text.past_cache);
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(8 * text.aad_len), static_cast<long long>(8 * text.len));
    hash = multiply(add(hash, lengths), load_block(key.powers[GcmLaneKey::most_powers - 1]));
    store_block(tag, add(reverse_block(hash), mask));
    leave_vectors();
  }

  // RFC 8452, sections 4 and 5.
  template <bool Encrypt>
  static void run_siv(const GcmLaneKey& key, const GcmSivText& text, std::uint8_t (&tag)[16]) {
    GcmLaneKey made;
    derive(key, text, made);
    __m128i hash = hash_bytes(made, _mm_setzero_si128(), text.aad, text.aad_len);
    if constexpr (Encrypt) {
      hash = hash_bytes(made, hash, text.in, text.len);
    } else {
      const Counters counter = first_counters(load_block(text.given_tag));
      hash = run_text<HashedText::output>(made, counter, hash, text.in, text.out, text.len);
    }
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(8 * text.len), static_cast<long long>(8 * text.aad_len));
    hash = multiply(add(hash, lengths), load_block(made.powers[GcmLaneKey::most_powers - 1]));
    std::uint8_t nonce[16] = {};
    std::memcpy(nonce, text.nonce, 12);
    hash = _mm_and_si128(add(hash, load_block(nonce)), _mm_set_epi32(0x7fffffff, -1, -1, -1));
    const __m128i made_tag = encrypt_block(made, hash);
    if constexpr (Encrypt) {
      run_text<HashedText::none>(made, first_counters(made_tag), hash, text.in, text.out, text.len);
    }
    store_block(tag, made_tag);
    forget(&made, sizeof made);
    leave_vectors();
  }

 private:
  static constexpr std::size_t most_in_flight = vectors * Simd::blocks;

  static __m128i encrypt_block(const GcmLaneKey& key, __m128i block) {
    return transform_block<true>(key.round_keys, key.rounds, block);
  }

  static void expand_key(const std::uint8_t* key, std::size_t key_len, GcmLaneKey& made) {
    made.rounds = static_cast<int>(key_len / 4 + 6);
    expand_aes_key(key, key_len / 4, made.round_keys);
  }

  static void make_powers(__m128i first, GcmLaneKey& made, std::size_t count) {
    __m128i power = first;
    std::memset(made.powers, 0, sizeof made.powers);
    std::memset(made.sums, 0, sizeof made.sums);
    for (std::size_t n = 1; n <= count; ++n) {
      if (n > 1) power = multiply(power, first);
      store_block(made.powers[GcmLaneKey::most_powers - n], power);
      store_block(made.sums[GcmLaneKey::most_powers - n], add(power, swap_halves(power)));
    }
  }

  // Section 4: the keys of a nonce, each half of a block of them from a block of counter and nonce.
  static void derive(const GcmLaneKey& key, const GcmSivText& text, GcmLaneKey& made) {
    const std::size_t key_len = 4 * static_cast<std::size_t>(key.rounds - 6);
    alignas(16) std::uint8_t derived[48 + 8], block[16];
    std::memcpy(block + 4, text.nonce, 12);
    for (std::uint32_t i = 0; i < 2 + key_len / 8; ++i) {
      std::memcpy(block, &i, sizeof i);
      store_block(derived + 8 * std::size_t{i}, encrypt_block(key, load_block(block)));  // the next covers the rest
    }
    expand_key(derived + 16, key_len, made);
    const std::size_t blocks = text.blocks();
    make_powers(load_block(derived), made, blocks < most_in_flight ? blocks : most_in_flight);
    forget(derived, sizeof derived);
  }

  // The counters that begin with a tag, whose last bit is set.
  static Counters first_counters(__m128i tag) {
    const __m128i first = _mm_or_si128(tag, _mm_set_epi32(static_cast<int>(0x80000000u), 0, 0, 0));
    return {Simd::add_words(Simd::from_block(first), Simd::counters()), false};
  }

  // A block as its hash takes it.
  static Vector to_hash(Vector block) {
    if constexpr (Siv) return block;
    return reverse_blocks<Simd>(block);
  }

  // The text under the key stream; the hash after the one or the other side of it.
  template <HashedText Hashed>
  [[gnu::always_inline]] static __m128i run_text(const GcmLaneKey& key, Counters counter, __m128i hash,
                                                 const std::uint8_t* in, std::uint8_t* out, std::size_t left,
                                                 bool past_cache = false) {
    Vector sums = Simd::first_block(hash);
    const auto run = [&](auto run_groups, std::size_t len) {
      sums = run_groups(key, counter, sums, in, out, len);
      in += len;
      out += len;
      left -= len;
    };
    if constexpr (Hashed != HashedText::none) {
      if (left >= least_by_lane) {
        // Where the input is hashed the last group is left, to join the sums.
        constexpr std::size_t last = Hashed == HashedText::input ? group_len : 0;
        const std::size_t head = past_cache || aligns(out, left) ? to_line(out) : 0;
        const std::size_t len = head + (left - head) / group_len * group_len - last;
        run(past_cache ? run_many_groups<Hashed, true> : run_many_groups<Hashed, false>, len);
      }
    }
    if (left >= group_len) run(run_groups<Hashed>, left / group_len * group_len);
    hash = Simd::sum_of_blocks(sums);
    return left == 0 ? hash : run_rest<Hashed>(key, counter, hash, in, out, left);
  }

  static std::size_t to_line(const std::uint8_t* out) { return (0 - reinterpret_cast<std::uintptr_t>(out)) % 64; }

  static bool aligns(const std::uint8_t* out, std::size_t len) {
    return vector_len == 64 && len >= least_aligned && to_line(out) % 16 == 0;
  }

  // The blocks before a line of the cache, if stores are to be aligned, and groups by lane (run_by_lane()). Not inline,
  // for the registers that their loop then has.
  template <HashedText Hashed, bool PastCache>
  [[gnu::noinline]] static Vector run_many_groups(const GcmLaneKey& key, Counters& counter, Vector sums,
                                                  const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    constexpr bool input = Hashed == HashedText::input;
    if (const std::size_t head = len % group_len; head != 0) {
      constexpr std::size_t of_line = 64 / vector_len;
      sums = Simd::first_block(run_few<Hashed, of_line>(key, counter, Simd::sum_of_blocks(sums), in, out, head));
      counter.advance(static_cast<int>(head / 16));
      in += head;
      out += head;
      len -= head;
    }
    Vector waiting[vectors];
    sums = run_by_lane<Simd, Siv, input, PastCache>(key, counter, sums, in, out, len, waiting);
    if constexpr (!input) {
      sums = Simd::first_block(hash_vectors(key, sums, waiting, vectors, vectors * Simd::blocks));
      forget(waiting, sizeof waiting);
    }
    return sums;
  }

  // Whole groups, one or more. Products of the hash fill the gaps between the rounds: those of the group itself where
  // its input is hashed, else those of the group before. Gives the hash, in the first block of a vector.
  template <HashedText Hashed>
  static Vector run_groups(const GcmLaneKey& key, Counters& counter, Vector sums, const std::uint8_t* in,
                           std::uint8_t* out, std::size_t len) {
    Vector waiting[vectors];
    for (std::size_t done = 0; done < len; done += group_len, in += group_len, out += group_len) {
      Vector blocks[vectors];
      if (Hashed == HashedText::none || (Hashed == HashedText::output && done == 0)) {
        make_key_stream(key, counter, blocks, [](std::size_t) {});
      } else {
        Sum sum = Sum::of_nothing();
        const auto hashed = [&](std::size_t v) {
          const Vector x = to_hash(Hashed == HashedText::input ? Simd::load(in + vector_len * v) : waiting[v]);
          return v == 0 ? Simd::exclusive_or(x, sums) : x;
        };
        const auto place = [](std::size_t v) { return GcmLaneKey::most_powers - Simd::blocks * (vectors - v); };
        make_key_stream(key, counter, blocks, [&](std::size_t r) {
          if (r > vectors) return;
          const std::size_t v = r % vectors;  // the first vector, which waits for the hash, comes last
          if constexpr (!adds_three<Simd>) {
            sum.template add_product<false>(hashed(v), key, place(v));
          } else if (r % 2 != 0) {
            sum.template take_product<false>(hashed(v), key, place(v));
          } else {
            sum.template add_taken<false>(hashed(v), key, place(v));
          }
        });
        sums = Simd::first_block(sum.reduced());
      }
      for (std::size_t v = 0; v < vectors; ++v) {
        const Vector text = Simd::exclusive_or(Simd::load(in + vector_len * v), blocks[v]);
        Simd::store(out + vector_len * v, text);
        if constexpr (Hashed == HashedText::output) waiting[v] = text;
      }
    }
    if constexpr (Hashed == HashedText::output) {
      sums = Simd::first_block(hash_vectors(key, sums, waiting, vectors, vectors * Simd::blocks));
      forget(waiting, sizeof waiting);
    }
    return sums;
  }

  // The next vectors of encrypted counters.
  template <std::size_t Count, class Meanwhile>
  [[gnu::always_inline]] static void make_key_stream(const GcmLaneKey& key, Counters& counter, Vector (&blocks)[Count],
                                                     const Meanwhile& meanwhile) {
    counter.fill(blocks);
    transform_vectors<Simd, true>(key.round_keys, key.rounds, blocks, meanwhile);
  }

  static __m128i multiply(__m128i a, __m128i b) {
    const __m128i middle = add(_mm_clmulepi64_si128(a, b, 0x01), _mm_clmulepi64_si128(a, b, 0x10));
    return reduce(_mm_clmulepi64_si128(a, b, 0x00), middle, _mm_clmulepi64_si128(a, b, 0x11));
  }

  // The hash after `used` vectors, which hold `count` blocks; zeros follow. sums: see GhashSum.
  [[gnu::always_inline]] static __m128i hash_vectors(const GcmLaneKey& key, Vector sums, const Vector* text,
                                                     std::size_t used, std::size_t count) {
    Sum sum = Sum::of_nothing();
    const std::size_t place = GcmLaneKey::most_powers - count;
    for (std::size_t v = used; v-- > 0;) {
      Vector x = to_hash(text[v]);
      if (v == 0) x = Simd::exclusive_or(x, sums);
      sum.template add_product<false>(x, key, place + Simd::blocks * v);
    }
    return sum.reduced();
  }

  // Less than a group of text, one byte or more: by as many vectors as it fills, or up to twice as many.
  template <HashedText Hashed>
  [[gnu::always_inline]] static __m128i run_rest(const GcmLaneKey& key, Counters counter, __m128i hash,
                                                 const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    if (len <= vector_len) return run_few<Hashed, 1>(key, counter, hash, in, out, len);
    if (len <= 2 * vector_len) return run_few<Hashed, 2>(key, counter, hash, in, out, len);
    if (len <= 4 * vector_len) return run_few<Hashed, 4>(key, counter, hash, in, out, len);
    return run_few<Hashed, vectors>(key, counter, hash, in, out, len);
  }

  template <HashedText Hashed, std::size_t Count>
  [[gnu::always_inline]] static __m128i run_few(const GcmLaneKey& key, Counters counter, __m128i hash,
                                                const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    Vector blocks[Count], hashed[Count];
    make_key_stream(key, counter, blocks, [](std::size_t) {});
    const std::size_t whole = len / vector_len, rest = len % vector_len;
    for (std::size_t v = 0; v < whole; ++v, in += vector_len, out += vector_len) {
      const Vector before = Simd::load(in);
      const Vector after = Simd::exclusive_or(before, blocks[v]);
      Simd::store(out, after);
      hashed[v] = Hashed == HashedText::output ? after : before;
    }
    if (rest > 0) {
      alignas(64) std::uint8_t text[vector_len];
      hashed[whole] = load_padded(text, in, rest);
      Simd::store(text, Simd::exclusive_or(hashed[whole], blocks[whole]));
      copy_short(out, text, rest);
      if constexpr (Hashed == HashedText::output) {
        std::memset(text + rest, 0, vector_len - rest);
        hashed[whole] = Simd::load(text);
      }
      forget(text, sizeof text);
    }
    if constexpr (Hashed == HashedText::none) return hash;
    return hash_vectors(key, Simd::first_block(hash), hashed, whole + (rest > 0), (len + 15) / 16);
  }

  // `len` bytes, less than a vector has, and zeros after them. buffer: memory for that, which the caller wipes.
  [[gnu::always_inline]] static Vector load_padded(std::uint8_t (&buffer)[vector_len], const std::uint8_t* bytes,
                                                   std::size_t len) {
    std::memset(buffer, 0, vector_len);
    copy_short(buffer, bytes, len);
    return Simd::load(buffer);
  }

  // The hash of bytes, filled up with zeros to a block.
  static __m128i hash_bytes(const GcmLaneKey& key, __m128i hash, const std::uint8_t* bytes, std::size_t len) {
    for (; len >= group_len; len -= group_len, bytes += group_len) {
      Vector text[vectors];
      for (std::size_t v = 0; v < vectors; ++v) text[v] = Simd::load(bytes + vector_len * v);
      hash = hash_vectors(key, Simd::first_block(hash), text, vectors, vectors * Simd::blocks);
    }
    if (len == 0) return hash;
    if (len <= 16) {
      std::uint8_t padded[16] = {};
      copy_short(padded, bytes, len);
      const __m128i block = Siv ? load_block(padded) : reverse_block(load_block(padded));
      forget(padded, sizeof padded);
      return multiply(add(hash, block), load_block(key.powers[GcmLaneKey::most_powers - 1]));
    }
    const std::size_t whole = len / vector_len, rest = len % vector_len;
    Vector text[vectors];
    for (std::size_t v = 0; v < whole; ++v) text[v] = Simd::load(bytes + vector_len * v);
    if (rest > 0) {
      alignas(64) std::uint8_t padded[vector_len];
      text[whole] = load_padded(padded, bytes + vector_len * whole, rest);
      forget(padded, sizeof padded);
    }
    return hash_vectors(key, Simd::first_block(hash), text, whole + (rest > 0), (len + 15) / 16);
  }
};

template <class Simd>
constexpr GcmLanes gcm_lanes{Simd::name,
                             GcmCode<Simd, false>::make_key,
                             GcmCode<Simd, false>::template run<true>,
                             GcmCode<Simd, false>::template run<false>,
                             GcmCode<Simd, true>::template run_siv<true>,
                             GcmCode<Simd, true>::template run_siv<false>};

}  // namespace
}  // namespace warpcipher::cpu
