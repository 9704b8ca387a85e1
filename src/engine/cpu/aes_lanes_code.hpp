// SPDX-License-Identifier: Apache-2.0
// The source that lanes_*.cpp compile, each for its own instruction set: modes of AES whose blocks do not wait for each
// other, with eight vectors of blocks in flight. Each mode is a step that transforms a group of vectors; the frame
// (run_groups) is the same for all. All of it is in an unnamed namespace, for the reason that aes_instructions.hpp
// gives.
#pragma once

#include "engine/cpu/aes_lanes.hpp"
#include "engine/cpu/lane_rounds.hpp"

namespace warpcipher::cpu {
namespace {

// x^128 = x^7 + x^2 + x + 1 (IEEE 1619, section 5.2).
inline __m128i tweak_polynomial() { return _mm_set_epi64x(0, 0x87); }

// A tweak times alpha.
inline __m128i next_tweak(__m128i tweak) {
  const __m128i leaving = _mm_srli_epi64(tweak, 63);
  const __m128i folded = _mm_clmulepi64_si128(leaving, tweak_polynomial(), 0x01);
  return _mm_xor_si128(_mm_add_epi64(tweak, tweak), _mm_xor_si128(_mm_slli_si128(leaving, 8), folded));
}

template <class Lanes>
struct AesLanesCode {
  using Vector = typename Lanes::Vector;
  static constexpr std::size_t vectors = Lanes::vectors;
  static constexpr std::size_t vector_len = 16 * Lanes::blocks;
  static constexpr std::size_t group_len = vectors * vector_len;
  static constexpr std::size_t group_blocks = vectors * Lanes::blocks;

  static void make_key(const std::uint8_t* key, const std::uint8_t* tweak_key, std::size_t key_len, AesLaneKey& made) {
    const int rounds = made.rounds = static_cast<int>(key_len / 4 + 6);
    expand_aes_key(key, key_len / 4, made.encrypt);
    for (int r = 0; r <= rounds; ++r) {
      const __m128i round_key = load_block(made.encrypt[rounds - r]);
      store_block(made.decrypt[r], r == 0 || r == rounds ? round_key : _mm_aesimc_si128(round_key));
    }
    if (tweak_key != nullptr) expand_aes_key(tweak_key, key_len / 4, made.tweak);
  }

  static void make_tweak(const AesLaneKey& key, const std::uint8_t* iv, std::uint8_t* tweak) {
    store_block(tweak, transform_block<true>(key.tweak, key.rounds, load_block(iv)));
  }

  template <bool Encrypt>
  static void ecb(const AesLaneKey& key, const std::uint8_t*, const std::uint8_t* in, std::uint8_t* out,
                  std::size_t len) {
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to) {
      Vector blocks[vectors];
      for (std::size_t v = 0; v < vectors; ++v) blocks[v] = Lanes::load(from + vector_len * v);
      transform<Encrypt>(key, blocks);
      for (std::size_t v = 0; v < vectors; ++v) Lanes::store(to + vector_len * v, blocks[v]);
    };
    run_groups(step, in, out, len);
  }

  // SP 800-38A, section 6.2: P = D(C) ^ C before it. From the last vector to the first: in place, a vector's result
  // covers ciphertext that the vector after it needs.
  static void cbc_decrypt(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                          std::size_t len) {
    __m128i chain = load_block(start);
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to) {
      Vector blocks[vectors];
      for (std::size_t v = 0; v < vectors; ++v) blocks[v] = Lanes::load(from + vector_len * v);
      const Vector before_first = Lanes::shift_in(chain, blocks[0]);
      chain = load_block(from + group_len - 16);
      transform<false>(key, blocks);
      for (std::size_t v = vectors; v-- > 1;) {
        const Vector before = Lanes::load(from + vector_len * v - 16);
        Lanes::store(to + vector_len * v, Lanes::exclusive_or(blocks[v], before));
      }
      Lanes::store(to, Lanes::exclusive_or(blocks[0], before_first));
    };
    run_groups(step, in, out, len);
  }

  // SP 800-38A, section 6.3, segments of a block: P = E(C before it) ^ C.
  static void cfb_decrypt(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                          std::size_t len) {
    __m128i chain = load_block(start);
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to) {
      Vector blocks[vectors] = {Lanes::shift_in(chain, Lanes::load(from))};
      for (std::size_t v = 1; v < vectors; ++v) blocks[v] = Lanes::load(from + vector_len * v - 16);
      chain = load_block(from + group_len - 16);
      transform<true>(key, blocks);
      add_text(blocks, from, to);
    };
    run_groups(step, in, out, len);
  }

  // SP 800-38A, section 6.5. The counter is a number of 128 bits; vectors count in its low half, and a text during
  // which that wraps is done in two parts.
  static void ctr(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                  std::size_t len) {
    const __m128i first = reverse_block(load_block(start));
    auto low = static_cast<std::uint64_t>(_mm_cvtsi128_si64(first));
    auto high = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(first, first)));
    const Vector increment = Lanes::from_block(_mm_set_epi64x(0, Lanes::blocks));
    while (len > 0) {
      const std::uint64_t to_wrap = 0 - low;
      const bool wraps = low != 0 && to_wrap < (len + 15) / 16;
      if constexpr (is_past_cache<Lanes>) {  // the second part would lie at any block
        if (wraps) return AesLanesCode<typename InCache<Lanes>::Lanes>::ctr(key, start, in, out, len);
      }
      const std::size_t part = wraps ? 16 * static_cast<std::size_t>(to_wrap) : len;
      const __m128i block = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
      Vector counter = Lanes::add_longs(Lanes::from_block(block), Lanes::counters());
      const auto step = [&](const std::uint8_t* from, std::uint8_t* to) {
        Vector blocks[vectors];
        for (std::size_t v = 0; v < vectors; ++v) {
          blocks[v] = Lanes::swap_bytes(counter);
          counter = Lanes::add_longs(counter, increment);
        }
        transform<true>(key, blocks);
        add_text(blocks, from, to);
      };
      run_groups(step, in, out, part);
      in += part;
      out += part;
      len -= part;
      low = 0;
      ++high;
    }
  }

  // IEEE 1619, sections 5.3 and 5.4.
  template <bool Encrypt>
  static void xts(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                  std::size_t len) {
    Vector tweaks[vectors];  // of the next group
    for (std::size_t v = 0; v < vectors; ++v) tweaks[v] = first_tweaks(start, v);
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to) {
      // Arrays that are copied stay in registers where there are enough; two that take turns through pointers cannot.
      Vector blocks[vectors], now[vectors];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < vectors; ++v) now[v] = tweaks[v];
      for (std::size_t v = 0; v < vectors; ++v) {
        blocks[v] = Lanes::exclusive_or(Lanes::load(from + vector_len * v), now[v]);
      }
      transform_vectors<Lanes, Encrypt>(Encrypt ? key.encrypt : key.decrypt, key.rounds, blocks, [&](std::size_t r) {
        if (r <= vectors) tweaks[r - 1] = advance(now[r - 1]);
      });
      for (std::size_t v = 0; v < vectors; ++v) {
        Lanes::store(to + vector_len * v, Lanes::exclusive_or(blocks[v], now[v]));
      }
    };
    const std::size_t stolen = len % 16;
    const std::size_t body = stolen == 0 ? len : len - stolen - 16;  // without the block that is stolen from
    const std::size_t whole = body / group_len * group_len;
    run_groups(step, in, out, whole);
    if (stolen == 0) {
      run_groups(step, in + whole, out + whole, body - whole);
      return forget(tweaks, sizeof tweaks);
    }

    alignas(64) std::uint8_t tweak_bytes[group_len];
    for (std::size_t v = 0; v < vectors; ++v) Lanes::store(tweak_bytes + vector_len * v, tweaks[v]);
    const __m128i tweak = load_block(tweak_bytes + (body - whole));
    run_groups(step, in + whole, out + whole, body - whole);
    steal<Encrypt>(key, tweak, in + body, out + body, stolen);
    forget(tweak_bytes, sizeof tweak_bytes);
    forget(tweaks, sizeof tweaks);
  }

 private:
  template <bool Encrypt>
  static void transform(const AesLaneKey& key, Vector (&blocks)[vectors]) {
    transform_vectors<Lanes, Encrypt>(Encrypt ? key.encrypt : key.decrypt, key.rounds, blocks);
  }

  // Whole groups, then what is left of the text in a buffer of a group.
  template <class Step>
  static void run_groups(const Step& step, const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    for (; len >= group_len; len -= group_len, in += group_len, out += group_len) {
      for (std::size_t v = 0; v < vectors; ++v) fetch_ahead<Lanes>(in + vector_len * v);
      step(in, out);
    }
    end_stores<Lanes>();
    if (len == 0) return;
    alignas(64) std::uint8_t rest[group_len] = {};
    copy_short(rest, in, len);
    step(rest, rest);
    end_stores<Lanes>();
    copy_short(out, rest, len);
    forget(rest, sizeof rest);
  }

  static void add_text(const Vector (&key_stream)[vectors], const std::uint8_t* from, std::uint8_t* to) {
    for (std::size_t v = 0; v < vectors; ++v) {
      Lanes::store(to + vector_len * v, Lanes::exclusive_or(Lanes::load(from + vector_len * v), key_stream[v]));
    }
  }

  // The first tweak times alpha^n, where n numbers the blocks of vector v: a shift by n bits, and what leaves a half.
  static Vector first_tweaks(const std::uint8_t* start, std::size_t v) {
    alignas(64) std::uint64_t left[2 * Lanes::blocks], right[2 * Lanes::blocks];
    for (std::size_t i = 0; i < 2 * Lanes::blocks; ++i) {
      left[i] = v * Lanes::blocks + i / 2;
      right[i] = 64 - left[i];
    }
    const Vector tweak = Lanes::from_block(load_block(start));
    const Vector shifted = Lanes::shift_left(tweak, Lanes::load(reinterpret_cast<const std::uint8_t*>(left)));
    const Vector leaving = Lanes::shift_right(tweak, Lanes::load(reinterpret_cast<const std::uint8_t*>(right)));
    const Vector folded = Lanes::template multiply<0x01>(leaving, Lanes::from_block(tweak_polynomial()));
    return Lanes::exclusive_or(shifted, Lanes::exclusive_or(Lanes::template shift_bytes_left<8>(leaving), folded));
  }

  // A tweak times alpha^group_blocks: a shift by whole bytes.
  static Vector advance(Vector tweak) {
    constexpr int bytes = group_blocks / 8;
    static_assert(group_blocks % 8 == 0 && bytes <= 7, "what leaves is folded once");
    const Vector leaving = Lanes::template shift_bytes_right<16 - bytes>(tweak);
    const Vector folded = Lanes::template multiply<0x00>(leaving, Lanes::from_block(tweak_polynomial()));
    return Lanes::exclusive_or(Lanes::template shift_bytes_left<bytes>(tweak), folded);
  }

  // Ciphertext stealing: the last whole block at `in`, under `tweak` and the one after it, and `len` bytes after it.
  template <bool Encrypt>
  static void steal(const AesLaneKey& key, __m128i tweak, const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    const __m128i after = next_tweak(tweak);
    const __m128i whole = transform_tweaked<Encrypt>(key, Encrypt ? tweak : after, load_block(in));
    std::uint8_t block[16], joined[16];
    store_block(block, whole);
    store_block(joined, whole);
    copy_short(joined, in + 16, len);
    copy_short(out + 16, block, len);
    store_block(out, transform_tweaked<Encrypt>(key, Encrypt ? after : tweak, load_block(joined)));
    forget(block, sizeof block);
    forget(joined, sizeof joined);
  }

  template <bool Encrypt>
  static __m128i transform_tweaked(const AesLaneKey& key, __m128i tweak, __m128i block) {
    block = transform_block<Encrypt>(Encrypt ? key.encrypt : key.decrypt, key.rounds, _mm_xor_si128(block, tweak));
    return _mm_xor_si128(block, tweak);
  }
};

template <class Lanes>
constexpr AesLanes make_aes_lanes(const char* name, const AesLanes* past_cache) {
  using Code = AesLanesCode<Lanes>;
  return {name,
          past_cache,
          Code::make_key,
          Code::make_tweak,
          Code::template ecb<true>,
          Code::template ecb<false>,
          Code::cbc_decrypt,
          Code::cfb_decrypt,
          Code::ctr,
          Code::template xts<true>,
          Code::template xts<false>};
}

}  // namespace
}  // namespace warpcipher::cpu
