// SPDX-License-Identifier: Apache-2.0
// ChaCha20 eight blocks at a time, on 256-bit vectors. The build compiles this file, and no other, with -mavx2 and
// -mbmi2.

#if defined(__x86_64__)

#if !defined(__AVX2__) || !defined(__BMI2__)
#error "compile this file with -mavx2 -mbmi2"
#endif

#include <immintrin.h>

#include "engine/cpu/chacha_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

alignas(32) constexpr std::uint8_t rotate16[32] = {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13,
                                                   2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13};
alignas(32) constexpr std::uint8_t rotate8[32] = {3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14,
                                                  3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14};

struct EightBlocks {
  using Vector = __m256i;
  static constexpr std::size_t blocks = 8;

  static Vector broadcast(std::uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
  static Vector numbers() { return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0); }
  static Vector load(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(std::uint8_t* p, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm256_xor_si256(a, b); }

  // Inline assembly: the 16 state vectors and 2 temporaries exceed the 16 AVX2 registers, and compilers spill badly. So
  // two of the third row wait in memory, while others are in use.
  [[gnu::always_inline]] static inline void quarter_rounds(Vector& a, Vector& b, Vector& c, Vector& d, Vector& e,
                                                           Vector& f, Vector& g, Vector& h) {
    Vector t, u;
    __asm__(
        "vpaddd %[b], %[a], %[a]\n\t"
        "vpaddd %[f], %[e], %[e]\n\t"
        "vpxor %[a], %[d], %[d]\n\t"
        "vpxor %[e], %[h], %[h]\n\t"
        "vpshufb %[rotate16], %[d], %[d]\n\t"
        "vpshufb %[rotate16], %[h], %[h]\n\t"
        "vpaddd %[d], %[c], %[c]\n\t"
        "vpaddd %[h], %[g], %[g]\n\t"
        "vpxor %[c], %[b], %[b]\n\t"
        "vpxor %[g], %[f], %[f]\n\t"
        "vpslld $12, %[b], %[t]\n\t"
        "vpsrld $20, %[b], %[b]\n\t"
        "vpslld $12, %[f], %[u]\n\t"
        "vpsrld $20, %[f], %[f]\n\t"
        "vpor %[t], %[b], %[b]\n\t"
        "vpor %[u], %[f], %[f]\n\t"
        "vpaddd %[b], %[a], %[a]\n\t"
        "vpaddd %[f], %[e], %[e]\n\t"
        "vpxor %[a], %[d], %[d]\n\t"
        "vpxor %[e], %[h], %[h]\n\t"
        "vpshufb %[rotate8], %[d], %[d]\n\t"
        "vpshufb %[rotate8], %[h], %[h]\n\t"
        "vpaddd %[d], %[c], %[c]\n\t"
        "vpaddd %[h], %[g], %[g]\n\t"
        "vpxor %[c], %[b], %[b]\n\t"
        "vpxor %[g], %[f], %[f]\n\t"
        "vpslld $7, %[b], %[t]\n\t"
        "vpsrld $25, %[b], %[b]\n\t"
        "vpslld $7, %[f], %[u]\n\t"
        "vpsrld $25, %[f], %[f]\n\t"
        "vpor %[t], %[b], %[b]\n\t"
        "vpor %[u], %[f], %[f]"
        : [a] "+x"(a), [b] "+x"(b), [c] "+x"(c), [d] "+x"(d), [e] "+x"(e), [f] "+x"(f), [g] "+x"(g), [h] "+x"(h),
          [t] "=&x"(t), [u] "=&x"(u)
        : [rotate16] "m"(*reinterpret_cast<const Vector*>(rotate16)), [rotate8] "m"(
                                                                          *reinterpret_cast<const Vector*>(rotate8)));
  }

  // The 32 bytes of vector 2 j and of vector 2 j + 1 are block j.
  template <class Sink>
  [[gnu::always_inline]] static inline void to_blocks(Vector (&x)[16], const Sink& sink) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Vector of_half[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) of_half[i] = x[8 * half + i];
      transpose(of_half);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) sink(2 * i + half, of_half[i]);
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
