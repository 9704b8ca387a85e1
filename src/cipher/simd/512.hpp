// SPDX-License-Identifier: Apache-2.0
// Vectors of 512 bits: AVX-512, where one instruction is any gate of three inputs, and where the file is compiled for
// them VAES and VPCLMULQDQ.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// The intrinsics of GCC 12 are reported for a register that they leave undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "cipher/simd/128.hpp"

namespace warpcipher::simd {
namespace {

struct Simd512 {
  using Vector = __m512i;
  using Longs [[gnu::vector_size(64)]] = std::uint64_t;
  static constexpr std::size_t words = 16;
  static constexpr std::size_t blocks = 4;
#if defined(__VAES__)
  static constexpr const char* name = "vaes512";
#else
  static constexpr const char* name = "avx512";
#endif

  static Vector load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::uint8_t* p, Vector v) { _mm512_storeu_si512(p, v); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm512_xor_si512(a, b); }
  static Vector broadcast(std::uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); }
  static Vector numbers() { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
  static Vector add_words(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  template <int Bits>
  static Vector rotate_words(Vector v) {
    return _mm512_rol_epi32(v, Bits);
  }
  static Vector unpack_low32(Vector a, Vector b) { return _mm512_unpacklo_epi32(a, b); }
  static Vector unpack_high32(Vector a, Vector b) { return _mm512_unpackhi_epi32(a, b); }
  static Vector unpack_low64(Vector a, Vector b) { return _mm512_unpacklo_epi64(a, b); }
  static Vector unpack_high64(Vector a, Vector b) { return _mm512_unpackhi_epi64(a, b); }
  // Two blocks of a and two of b, each chosen by two bits.
  template <int Chosen>
  static Vector take_blocks(Vector a, Vector b) {
    return _mm512_shuffle_i32x4(a, b, Chosen);
  }

#if defined(__VAES__)
  static Vector from_block(__m128i block) { return _mm512_broadcast_i32x4(block); }
  static Vector first_block(__m128i block) { return _mm512_zextsi128_si512(block); }
  static __m128i first_of(Vector v) { return _mm512_castsi512_si128(v); }
  static __m128i sum_of_blocks(Vector v) {
    const __m256i halves = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  }
  static Vector counters() { return _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0); }
  static void store_past_cache(std::uint8_t* p, Vector v) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), v); }
  static Vector add_longs(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
  static Vector add_three(Vector a, Vector b, Vector c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
  static Vector shuffle(Vector v, Vector order) { return _mm512_shuffle_epi8(v, order); }
  static Vector swap_halves(Vector v) { return _mm512_shuffle_epi32(v, static_cast<_MM_PERM_ENUM>(0x4e)); }
  static Vector encrypt_round(Vector v, Vector key) { return _mm512_aesenc_epi128(v, key); }
  static Vector encrypt_last(Vector v, Vector key) { return _mm512_aesenclast_epi128(v, key); }
  static Vector decrypt_round(Vector v, Vector key) { return _mm512_aesdec_epi128(v, key); }
  static Vector decrypt_last(Vector v, Vector key) { return _mm512_aesdeclast_epi128(v, key); }
  static Vector shift_left(Vector v, Vector bits) { return _mm512_sllv_epi64(v, bits); }
  static Vector shift_right(Vector v, Vector bits) { return _mm512_srlv_epi64(v, bits); }
  template <int Bytes>
  static Vector shift_bytes_left(Vector v) {
    return _mm512_bslli_epi128(v, Bytes);
  }
  template <int Bytes>
  static Vector shift_bytes_right(Vector v) {
    return _mm512_bsrli_epi128(v, Bytes);
  }
  static Vector shift_in(__m128i before, Vector v) { return _mm512_alignr_epi64(v, from_block(before), 6); }
  template <int Halves>
  static Vector multiply(Vector a, Vector b) {
    return _mm512_clmulepi64_epi128(a, b, Halves);
  }
  // Of blocks a0 a1 .. and b0 b1 ..: a0 b0 a1 b1 .. in both.
  static void interleave_blocks(Vector& a, Vector& b) {
    const Vector low = _mm512_permutex2var_epi64(a, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), b);
    b = _mm512_permutex2var_epi64(a, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), b);
    a = low;
  }
  static std::uint32_t equal_words(Vector a, Vector b) { return _mm512_cmpeq_epi32_mask(a, b); }
#endif
};

}  // namespace
}  // namespace warpcipher::simd
