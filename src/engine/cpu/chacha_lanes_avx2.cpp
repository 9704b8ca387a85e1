// SPDX-License-Identifier: Apache-2.0
// ChaCha20 eight blocks at a time, on 256-bit vectors. The build compiles this file, and no other, with -mavx2.

#if defined(__x86_64__)

#if !defined(__AVX2__)
#error "compile this file with -mavx2"
#endif

#include <immintrin.h>

#include "engine/cpu/chacha_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

struct EightBlocks {
  using Vector = __m256i;
  static constexpr std::size_t blocks = 8;

  static Vector broadcast(std::uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
  static Vector numbers() { return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0); }
  static Vector load(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(std::uint8_t* p, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm256_xor_si256(a, b); }

  template <int Bits>
  static Vector rotate(Vector v) {
    if constexpr (Bits == 16) {
      return _mm256_shuffle_epi8(
          v, _mm256_broadcastsi128_si256(_mm_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2)));
    } else if constexpr (Bits == 8) {
      return _mm256_shuffle_epi8(
          v, _mm256_broadcastsi128_si256(_mm_set_epi8(14, 13, 12, 15, 10, 9, 8, 11, 6, 5, 4, 7, 2, 1, 0, 3)));
    } else {
      return _mm256_or_si256(_mm256_slli_epi32(v, Bits), _mm256_srli_epi32(v, 32 - Bits));
    }
  }

  // The 32 bytes of vector 2 j and of vector 2 j + 1 are block j.
  static void to_blocks(Vector (&x)[16]) {
    Vector first[8], second[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      first[i] = x[i];
      second[i] = x[8 + i];
    }
    transpose(first);
    transpose(second);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      x[2 * i] = first[i];
      x[2 * i + 1] = second[i];
    }
  }

  static void to_columns(Vector (&x)[16]) {
    Vector first[8], second[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      first[i] = x[2 * i];
      second[i] = x[2 * i + 1];
    }
    transpose(first);
    transpose(second);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      x[i] = first[i];
      x[8 + i] = second[i];
    }
  }

 private:
  // Of words: 2 by 2, 4 by 4, 8 by 8.
  static void transpose(Vector (&x)[8]) {
    Vector pairs[8], fours[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        fours[i + 2 * j] = _mm256_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
        fours[i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
      x[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
    }
  }
};

}  // namespace

constinit const ChaChaLanes chacha_lanes_avx2 = make_chacha_lanes<EightBlocks>("avx2");

}  // namespace warpcipher::cpu

#endif
