// SPDX-License-Identifier: Apache-2.0
// ChaCha20 sixteen blocks at a time, on 512-bit vectors. The build compiles this file, and no other, with -mavx512f.

#if defined(__x86_64__)

#if !defined(__AVX512F__)
#error "compile this file with -mavx512f"
#endif

#if defined(__GNUC__) && !defined(__clang__)
// The intrinsics of GCC 12 are reported for a register that they leave undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include "engine/cpu/chacha_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

struct SixteenBlocks {
  using Vector = __m512i;
  static constexpr std::size_t blocks = 16;

  static Vector broadcast(std::uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); }
  static Vector numbers() { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
  static Vector load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::uint8_t* p, Vector v) { _mm512_storeu_si512(p, v); }
  static Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm512_xor_si512(a, b); }

  template <int Bits>
  static Vector rotate(Vector v) {
    return _mm512_rol_epi32(v, Bits);
  }

  // Of words: 2 by 2, 4 by 4 in each quarter; then of the quarters. Vector j is block j.
  static void to_blocks(Vector (&x)[16]) {
    Vector pairs[16], fours[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        fours[i + 2 * j] = _mm512_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
        fours[i + 2 * j + 1] = _mm512_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const Vector even01 = _mm512_shuffle_i32x4(fours[k], fours[k + 4], 0x88);
      const Vector odd01 = _mm512_shuffle_i32x4(fours[k], fours[k + 4], 0xdd);
      const Vector even23 = _mm512_shuffle_i32x4(fours[k + 8], fours[k + 12], 0x88);
      const Vector odd23 = _mm512_shuffle_i32x4(fours[k + 8], fours[k + 12], 0xdd);
      x[k] = _mm512_shuffle_i32x4(even01, even23, 0x88);
      x[k + 4] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
      x[k + 8] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
      x[k + 12] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
    }
  }

  static void to_columns(Vector (&x)[16]) { to_blocks(x); }
};

}  // namespace

constinit const ChaChaLanes chacha_lanes_avx512 = make_chacha_lanes<SixteenBlocks>("avx512");

}  // namespace warpcipher::cpu

#endif
