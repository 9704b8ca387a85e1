// SPDX-License-Identifier: Apache-2.0
// ChaCha20 sixteen blocks at a time, on 512-bit vectors. The build compiles this file, and no other, with -mavx512f
// and -mbmi2.

#if defined(__x86_64__)

#if !defined(__AVX512F__) || !defined(__BMI2__)
#error "compile this file with -mavx512f -mbmi2"
#endif

#if defined(__GNUC__) && !defined(__clang__)
// The intrinsics of GCC 12 are reported for a register that they leave undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include "engine/cpu/chacha_sixteen_blocks.hpp"

namespace warpcipher::cpu {
namespace {

struct Avx512Words {
  using Vector = __m512i;

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

  static Vector unpack_low32(Vector a, Vector b) { return _mm512_unpacklo_epi32(a, b); }
  static Vector unpack_high32(Vector a, Vector b) { return _mm512_unpackhi_epi32(a, b); }
  static Vector unpack_low64(Vector a, Vector b) { return _mm512_unpacklo_epi64(a, b); }
  static Vector unpack_high64(Vector a, Vector b) { return _mm512_unpackhi_epi64(a, b); }

  template <int Chosen>
  static Vector take_quarters(Vector a, Vector b) {
    return _mm512_shuffle_i32x4(a, b, Chosen);
  }
};

}  // namespace

constinit const ChaChaLanes chacha_lanes_avx512 = make_chacha_lanes<SixteenBlocks<Avx512Words>>("avx512");

}  // namespace warpcipher::cpu

#endif
