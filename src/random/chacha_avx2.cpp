// SPDX-License-Identifier: Apache-2.0
// Eight blocks of ChaCha20 side by side, a block in each word of a vector. The build compiles this file, and no other,
// with -mavx2.

#if defined(__x86_64__)

#if !defined(__AVX2__)
#error "compile this file with -mavx2"
#endif

#include <immintrin.h>

#include "random/host.hpp"

namespace warpcipher::random {
namespace {

using Vector = __m256i;

template <int Bits>
[[gnu::always_inline]] inline Vector rotate(Vector x) {
  return _mm256_or_si256(_mm256_slli_epi32(x, Bits), _mm256_srli_epi32(x, 32 - Bits));
}

template <>
[[gnu::always_inline]] inline Vector rotate<16>(Vector x) {
  return _mm256_shuffle_epi8(x, _mm256_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2, 13, 12, 15, 14, 9,
                                                8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2));
}

template <>
[[gnu::always_inline]] inline Vector rotate<8>(Vector x) {
  return _mm256_shuffle_epi8(x, _mm256_set_epi8(14, 13, 12, 15, 10, 9, 8, 11, 6, 5, 4, 7, 2, 1, 0, 3, 14, 13, 12, 15,
                                                10, 9, 8, 11, 6, 5, 4, 7, 2, 1, 0, 3));
}

[[gnu::always_inline]] inline void quarter_round(Vector& a, Vector& b, Vector& c, Vector& d) {
  a = _mm256_add_epi32(a, b);
  d = rotate<16>(_mm256_xor_si256(d, a));
  c = _mm256_add_epi32(c, d);
  b = rotate<12>(_mm256_xor_si256(b, c));
  a = _mm256_add_epi32(a, b);
  d = rotate<8>(_mm256_xor_si256(d, a));
  c = _mm256_add_epi32(c, d);
  b = rotate<7>(_mm256_xor_si256(b, c));
}

// Words first..first + 7 of eight blocks, block b in word b of each vector, to where they lie in the blocks.
[[gnu::always_inline]] inline void store_half(const Vector* x, std::uint8_t* out) {
  Vector pairs[8], quads[8];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 2; ++k) {
      quads[4 * i + 2 * k] = _mm256_unpacklo_epi64(pairs[4 * i + k], pairs[4 * i + k + 2]);
      quads[4 * i + 2 * k + 1] = _mm256_unpackhi_epi64(pairs[4 * i + k], pairs[4 * i + k + 2]);
    }
  }
  for (int k = 0; k < 4; ++k) {
    _mm256_storeu_si256(reinterpret_cast<Vector*>(out + 64 * k),
                        _mm256_permute2x128_si256(quads[k], quads[4 + k], 0x20));
    _mm256_storeu_si256(reinterpret_cast<Vector*>(out + 64 * (4 + k)),
                        _mm256_permute2x128_si256(quads[k], quads[4 + k], 0x31));
  }
}

}  // namespace

void chacha_eight_blocks_avx2(const chacha::State& state, std::size_t groups, std::uint8_t* out) {
  Vector first[16];
  for (int i = 0; i < 16; ++i) first[i] = _mm256_set1_epi32(static_cast<int>(state.words[i]));
  first[12] = _mm256_add_epi32(first[12], _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
  for (; groups != 0; --groups, out += 512) {
    Vector x[16];
    for (int i = 0; i < 16; ++i) x[i] = first[i];
    for (int round = 0; round < chacha::double_rounds; ++round) {
      for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
      for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
    for (int i = 0; i < 16; ++i) x[i] = _mm256_add_epi32(x[i], first[i]);
    store_half(x, out);
    store_half(x + 8, out + 32);
    first[12] = _mm256_add_epi32(first[12], _mm256_set1_epi32(8));
  }
}

}  // namespace warpcipher::random

#endif
