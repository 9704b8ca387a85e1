// SPDX-License-Identifier: Apache-2.0
// Vectors of 256 bits: AVX2, and where the file is compiled for them VAES and VPCLMULQDQ.
#pragma once

#include "cipher/simd/128.hpp"

namespace warpcipher::simd {
namespace {

struct Simd256 {
  using Vector = __m256i;
  using Longs [[gnu::vector_size(32)]] = std::uint64_t;
  static constexpr std::size_t words = 8;
  static constexpr std::size_t blocks = 2;
#if defined(__VAES__)
  static constexpr const char* name = "vaes";
#else
  static constexpr const char* name = "avx2";
#endif

  static Vector load(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(std::uint8_t* p, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
  static Vector broadcast(std::uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
  static Vector numbers() { return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0); }
  static Vector add_words(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector unpack_low32(Vector a, Vector b) { return _mm256_unpacklo_epi32(a, b); }
  static Vector unpack_high32(Vector a, Vector b) { return _mm256_unpackhi_epi32(a, b); }
  static Vector unpack_low64(Vector a, Vector b) { return _mm256_unpacklo_epi64(a, b); }
  static Vector unpack_high64(Vector a, Vector b) { return _mm256_unpackhi_epi64(a, b); }
  // The first blocks of both, or the second.
  static Vector low_blocks(Vector a, Vector b) { return _mm256_permute2x128_si256(a, b, 0x20); }
  static Vector high_blocks(Vector a, Vector b) { return _mm256_permute2x128_si256(a, b, 0x31); }

#if defined(__VAES__)
  static Vector from_block(__m128i block) { return _mm256_broadcastsi128_si256(block); }
  static Vector first_block(__m128i block) { return _mm256_zextsi128_si256(block); }
  static __m128i sum_of_blocks(Vector v) {
    return _mm_xor_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  }
  static Vector counters() { return _mm256_set_epi32(0, 0, 0, 1, 0, 0, 0, 0); }
  static void store_past_cache(std::uint8_t* p, Vector v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v); }
  static Vector add_longs(Vector a, Vector b) { return _mm256_add_epi64(a, b); }
  static Vector shuffle(Vector v, Vector order) { return _mm256_shuffle_epi8(v, order); }
  static Vector swap_halves(Vector v) { return _mm256_shuffle_epi32(v, 0x4e); }
  static Vector encrypt_round(Vector v, Vector key) { return _mm256_aesenc_epi128(v, key); }
  static Vector encrypt_last(Vector v, Vector key) { return _mm256_aesenclast_epi128(v, key); }
  static Vector decrypt_round(Vector v, Vector key) { return _mm256_aesdec_epi128(v, key); }
  static Vector decrypt_last(Vector v, Vector key) { return _mm256_aesdeclast_epi128(v, key); }
  static Vector shift_left(Vector v, Vector bits) { return _mm256_sllv_epi64(v, bits); }
  static Vector shift_right(Vector v, Vector bits) { return _mm256_srlv_epi64(v, bits); }
  template <int Bytes>
  static Vector shift_bytes_left(Vector v) {
    return _mm256_slli_si256(v, Bytes);
  }
  template <int Bytes>
  static Vector shift_bytes_right(Vector v) {
    return _mm256_srli_si256(v, Bytes);
  }
  static Vector shift_in(__m128i before, Vector v) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(before), _mm256_castsi256_si128(v), 1);
  }
  template <int Halves>
  static Vector multiply(Vector a, Vector b) {
    return _mm256_clmulepi64_epi128(a, b, Halves);
  }
  // Of blocks a0 a1 .. and b0 b1 ..: a0 b0 a1 b1 .. in both.
  static void interleave_blocks(Vector& a, Vector& b) {
    const Vector low = low_blocks(a, b);
    b = high_blocks(a, b);
    a = low;
  }
  static std::uint32_t equal_words(Vector a, Vector b) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))));
  }
#endif
};

}  // namespace
}  // namespace warpcipher::simd
