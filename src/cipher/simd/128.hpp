// SPDX-License-Identifier: Apache-2.0
// The vector types of code that is compiled once for each instruction set (src/instruction_sets/): Simd128, Simd256
// (256.hpp) and Simd512 (512.hpp) have the same members. A vector has `words` words of 32 bits and `blocks` blocks of
// 128 bits; moves of bytes or words are in each block. Longs is for bitsliced code.
//
// All of it is in an unnamed namespace, and so is code made of it: a function that the linker could merge with
// another file's copy might run instructions that the processor lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace warpcipher::simd {
namespace {

// SSE2 or NEON, which every 64-bit x86 and ARM processor has, and where the file is compiled for them AES instructions.
struct Simd128 {
#if defined(__x86_64__)
  using Vector = __m128i;
#else
  using Vector [[gnu::vector_size(16), gnu::may_alias]] = long long;
#endif
  using Words [[gnu::vector_size(16)]] = std::uint32_t;
  using Longs [[gnu::vector_size(16)]] = std::uint64_t;
  static constexpr std::size_t words = 4;
  static constexpr std::size_t blocks = 1;
#if defined(__AES__)
  static constexpr const char* name = "aesni";
#else
  static constexpr const char* name = "baseline";
#endif

  static Vector load(const std::uint8_t* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(std::uint8_t* p, Vector v) { std::memcpy(p, &v, sizeof v); }
  static Vector exclusive_or(Vector a, Vector b) { return a ^ b; }
  static Vector broadcast(std::uint32_t word) { return to_vector(Words{word, word, word, word}); }
  static Vector numbers() { return to_vector(Words{0, 1, 2, 3}); }
  static Vector add_words(Vector a, Vector b) { return to_vector(to_words(a) + to_words(b)); }
  template <int Bits>
  static Vector rotate_words(Vector v) {
    return to_vector(to_words(v) << Bits | to_words(v) >> (32 - Bits));
  }
#if defined(__x86_64__)
  static Vector unpack_low32(Vector a, Vector b) { return _mm_unpacklo_epi32(a, b); }
  static Vector unpack_high32(Vector a, Vector b) { return _mm_unpackhi_epi32(a, b); }
  static Vector unpack_low64(Vector a, Vector b) { return _mm_unpacklo_epi64(a, b); }
  static Vector unpack_high64(Vector a, Vector b) { return _mm_unpackhi_epi64(a, b); }
#else
  static Vector unpack_low32(Vector a, Vector b) { return unpack32(to_words(a), to_words(b), 0); }
  static Vector unpack_high32(Vector a, Vector b) { return unpack32(to_words(a), to_words(b), 2); }
  static Vector unpack_low64(Vector a, Vector b) { return Vector{a[0], b[0]}; }
  static Vector unpack_high64(Vector a, Vector b) { return Vector{a[1], b[1]}; }
#endif

#if defined(__AES__)
  static Vector from_block(__m128i block) { return block; }
  static Vector first_block(__m128i block) { return block; }  // and zeros
  static __m128i sum_of_blocks(Vector v) { return v; }
  static Vector counters() { return _mm_setzero_si128(); }  // offset of each block's counter within the vector
  static void store_past_cache(std::uint8_t* p, Vector v) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), v); }
  static Vector add_longs(Vector a, Vector b) { return _mm_add_epi64(a, b); }
  static Vector shuffle(Vector v, Vector order) { return _mm_shuffle_epi8(v, order); }
  static Vector swap_halves(Vector v) { return _mm_shuffle_epi32(v, 0x4e); }
  static Vector encrypt_round(Vector v, Vector key) { return _mm_aesenc_si128(v, key); }
  static Vector encrypt_last(Vector v, Vector key) { return _mm_aesenclast_si128(v, key); }
  static Vector decrypt_round(Vector v, Vector key) { return _mm_aesdec_si128(v, key); }
  static Vector decrypt_last(Vector v, Vector key) { return _mm_aesdeclast_si128(v, key); }
  static Vector shift_left(Vector v, Vector bits) { return _mm_sll_epi64(v, bits); }
  static Vector shift_right(Vector v, Vector bits) { return _mm_srl_epi64(v, bits); }
  template <int Bytes>
  static Vector shift_bytes_left(Vector v) {
    return _mm_slli_si128(v, Bytes);
  }
  template <int Bytes>
  static Vector shift_bytes_right(Vector v) {
    return _mm_srli_si128(v, Bytes);
  }
  // `before`, then the blocks of v but the last.
  static Vector shift_in(__m128i before, Vector) { return before; }
  template <int Halves>
  static Vector multiply(Vector a, Vector b) {
    return _mm_clmulepi64_si128(a, b, Halves);
  }
  // Of blocks a0 a1 .. and b0 b1 ..: a0 b0 a1 b1 .. in both.
  static void interleave_blocks(Vector&, Vector&) {}
  // A bit for each word.
  static std::uint32_t equal_words(Vector a, Vector b) {
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(a, b))));
  }
#endif

 private:
  static Words to_words(Vector v) { return reinterpret_cast<Words>(v); }
  static Vector to_vector(Words words) { return reinterpret_cast<Vector>(words); }
#if !defined(__x86_64__)
  static Vector unpack32(Words a, Words b, int i) { return to_vector(Words{a[i], b[i], a[i + 1], b[i + 1]}); }
#endif
};

// Words of four vectors, 4 by 4 in each block: then vector i has word i of each.
template <class Simd>
[[gnu::always_inline]] inline void transpose_words(typename Simd::Vector (&x)[4]) {
  const auto low01 = Simd::unpack_low32(x[0], x[1]), low23 = Simd::unpack_low32(x[2], x[3]);
  const auto high01 = Simd::unpack_high32(x[0], x[1]), high23 = Simd::unpack_high32(x[2], x[3]);
  x[0] = Simd::unpack_low64(low01, low23);
  x[1] = Simd::unpack_high64(low01, low23);
  x[2] = Simd::unpack_low64(high01, high23);
  x[3] = Simd::unpack_high64(high01, high23);
}

}  // namespace
}  // namespace warpcipher::simd
