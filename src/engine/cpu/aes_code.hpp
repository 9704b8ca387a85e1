// SPDX-License-Identifier: Apache-2.0
// Modes of AES whose blocks do not wait for each other, with eight vectors of blocks in flight. Each mode is a step
// that transforms a group of vectors; the frame (run_groups) is the same for all. All of it is in an unnamed namespace,
// for the reason that cipher/simd/128.hpp gives.
#pragma once

#include <type_traits>

#include "engine/cpu/aes_rounds.hpp"
#include "engine/cpu/lanes.hpp"

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

template <class Simd>
struct AesCode {
  using Vector = typename Simd::Vector;
  using Group = Vector[vectors_in_flight];
  static constexpr std::size_t vectors = vectors_in_flight;
  static constexpr std::size_t vector_len = 16 * Simd::blocks;
  static constexpr std::size_t group_len = vectors * vector_len;
  static constexpr std::size_t group_blocks = vectors * Simd::blocks;

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
                  std::size_t len, bool past_cache) {
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to, auto past) {
      Group blocks;
      for (std::size_t v = 0; v < vectors; ++v) blocks[v] = Simd::load(from + vector_len * v);
      transform<Encrypt>(key, blocks);
      store_vectors<Simd>(to, blocks, past);
    };
    run_groups(step, in, out, len, past_cache);
  }

  // SP 800-38A, section 6.2: P = D(C) ^ C before it.
  static void cbc_decrypt(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                          std::size_t len, bool past_cache) {
    __m128i chain = load_block(start);
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to, auto past) {
      Group blocks;
      for (std::size_t v = 0; v < vectors; ++v) blocks[v] = Simd::load(from + vector_len * v);
      const Vector before_first = Simd::shift_in(chain, blocks[0]);
      chain = load_block(from + group_len - 16);
      transform<false>(key, blocks);
      blocks[0] = Simd::exclusive_or(blocks[0], before_first);
      for (std::size_t v = 1; v < vectors; ++v) {
        blocks[v] = Simd::exclusive_or(blocks[v], Simd::load(from + vector_len * v - 16));
      }
      store_vectors<Simd>(to, blocks, past);  // all that is read is read by now: `to` may be `from`
    };
    run_groups(step, in, out, len, past_cache);
  }

  // SP 800-38A, section 6.3, segments of a block: P = E(C before it) ^ C.
  static void cfb_decrypt(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                          std::size_t len, bool past_cache) {
    __m128i chain = load_block(start);
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to, auto past) {
      Group blocks = {Simd::shift_in(chain, Simd::load(from))};
      for (std::size_t v = 1; v < vectors; ++v) blocks[v] = Simd::load(from + vector_len * v - 16);
      chain = load_block(from + group_len - 16);
      transform<true>(key, blocks);
      add_text(blocks, from);
      store_vectors<Simd>(to, blocks, past);
    };
    run_groups(step, in, out, len, past_cache);
  }

  // SP 800-38A, section 6.5. The counter is a number of 128 bits; vectors count in its low half, and a text during
  // which that wraps is done in two parts.
  static void ctr(const AesLaneKey& key, const std::uint8_t* start, const std::uint8_t* in, std::uint8_t* out,
                  std::size_t len, bool past_cache) {
    const __m128i first = reverse_block(load_block(start));
    auto low = static_cast<std::uint64_t>(_mm_cvtsi128_si64(first));
    auto high = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(first, first)));
    const Vector increment = Simd::from_block(_mm_set_epi64x(0, Simd::blocks));
    while (len > 0) {
      const std::uint64_t to_wrap = 0 - low;
      const bool wraps = low != 0 && to_wrap < (len + 15) / 16;
      past_cache &= !wraps;  // the second part would lie at any block
      const std::size_t part = wraps ? 16 * static_cast<std::size_t>(to_wrap) : len;
      const __m128i block = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
      Vector counter = Simd::add_longs(Simd::from_block(block), Simd::counters());
      const auto step = [&](const std::uint8_t* from, std::uint8_t* to, auto past) {
        Group blocks;
        for (std::size_t v = 0; v < vectors; ++v) {
          blocks[v] = reverse_blocks<Simd>(counter);
          counter = Simd::add_longs(counter, increment);
        }
        transform<true>(key, blocks);
        add_text(blocks, from);
        store_vectors<Simd>(to, blocks, past);
      };
      run_groups(step, in, out, part, past_cache);
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
                  std::size_t len, bool past_cache) {
    Group tweaks;  // of the next group
    for (std::size_t v = 0; v < vectors; ++v) tweaks[v] = first_tweaks(start, v);
    const auto step = [&](const std::uint8_t* from, std::uint8_t* to, auto past) {
      // Arrays that are copied stay in registers if there are enough; two that take turns through pointers cannot.
      Group blocks, now;
#pragma GCC unroll 8
      for (std::size_t v = 0; v < vectors; ++v) now[v] = tweaks[v];
      for (std::size_t v = 0; v < vectors; ++v) {
        blocks[v] = Simd::exclusive_or(Simd::load(from + vector_len * v), now[v]);
      }
      transform_vectors<Simd, Encrypt>(Encrypt ? key.encrypt : key.decrypt, key.rounds, blocks, [&](std::size_t r) {
        if (r <= vectors) tweaks[r - 1] = advance(now[r - 1]);
      });
      for (std::size_t v = 0; v < vectors; ++v) blocks[v] = Simd::exclusive_or(blocks[v], now[v]);
      store_vectors<Simd>(to, blocks, past);
    };
    const std::size_t stolen = len % 16;
    const std::size_t body = stolen == 0 ? len : len - stolen - 16;  // without the block that is stolen from
    const std::size_t whole = body / group_len * group_len;
    run_groups(step, in, out, whole, past_cache);
    if (stolen == 0) {
      run_groups(step, in + whole, out + whole, body - whole, past_cache);
      return forget(tweaks, sizeof tweaks);
    }

    alignas(64) std::uint8_t tweak_bytes[group_len];
    for (std::size_t v = 0; v < vectors; ++v) Simd::store(tweak_bytes + vector_len * v, tweaks[v]);
    const __m128i tweak = load_block(tweak_bytes + (body - whole));
    run_groups(step, in + whole, out + whole, body - whole, past_cache);
    steal<Encrypt>(key, tweak, in + body, out + body, stolen);
    forget(tweak_bytes, sizeof tweak_bytes);
    forget(tweaks, sizeof tweaks);
  }

 private:
  template <bool Encrypt>
  static void transform(const AesLaneKey& key, Group& blocks) {
    transform_vectors<Simd, Encrypt>(Encrypt ? key.encrypt : key.decrypt, key.rounds, blocks);
  }

  // Whole groups, then the rest of the text in a buffer of a group, which stays in the cache.
  template <class Step>
  static void run_groups(const Step& step, const std::uint8_t* in, std::uint8_t* out, std::size_t len,
                         bool past_cache) {
    for (; len >= group_len; len -= group_len, in += group_len, out += group_len) {
      for (std::size_t v = 0; v < vectors; ++v) fetch_ahead<Simd>(in + vector_len * v);
      step(in, out, past_cache);
    }
    end_stores(past_cache);
    if (len == 0) return;
    alignas(64) std::uint8_t rest[group_len] = {};
    copy_short(rest, in, len);
    step(rest, rest, std::false_type());
    copy_short(out, rest, len);
    forget(rest, sizeof rest);
  }

  static void add_text(Group& key_stream, const std::uint8_t* from) {
    for (std::size_t v = 0; v < vectors; ++v) {
      key_stream[v] = Simd::exclusive_or(Simd::load(from + vector_len * v), key_stream[v]);
    }
  }

  // The first tweak times alpha^n, where n numbers the blocks of vector v: a shift by n bits, and the bits that leave a
  // half.
  static Vector first_tweaks(const std::uint8_t* start, std::size_t v) {
    alignas(64) std::uint64_t left[2 * Simd::blocks], right[2 * Simd::blocks];
    for (std::size_t i = 0; i < 2 * Simd::blocks; ++i) {
      left[i] = v * Simd::blocks + i / 2;
      right[i] = 64 - left[i];
    }
    const Vector tweak = Simd::from_block(load_block(start));
    const Vector shifted = Simd::shift_left(tweak, Simd::load(reinterpret_cast<const std::uint8_t*>(left)));
    const Vector leaving = Simd::shift_right(tweak, Simd::load(reinterpret_cast<const std::uint8_t*>(right)));
    const Vector folded = Simd::template multiply<0x01>(leaving, Simd::from_block(tweak_polynomial()));
    return Simd::exclusive_or(shifted, Simd::exclusive_or(Simd::template shift_bytes_left<8>(leaving), folded));
  }

  // A tweak times alpha^group_blocks: a shift by whole bytes.
  static Vector advance(Vector tweak) {
    constexpr int bytes = group_blocks / 8;
    static_assert(group_blocks % 8 == 0 && bytes <= 7, "what leaves is folded once");
    const Vector leaving = Simd::template shift_bytes_right<16 - bytes>(tweak);
    const Vector folded = Simd::template multiply<0x00>(leaving, Simd::from_block(tweak_polynomial()));
    return Simd::exclusive_or(Simd::template shift_bytes_left<bytes>(tweak), folded);
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

template <class Simd, class Code = AesCode<Simd>>
constexpr AesLanes aes_lanes{
    Simd::name,        Code::make_key,    Code::make_tweak, Code::template ecb<true>, Code::template ecb<false>,
    Code::cbc_decrypt, Code::cfb_decrypt, Code::ctr,        Code::template xts<true>, Code::template xts<false>};

}  // namespace
}  // namespace warpcipher::cpu
