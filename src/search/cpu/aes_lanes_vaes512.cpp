// SPDX-License-Identifier: Apache-2.0
// AES key search on 512-bit vectors: four AES blocks for each instruction. The build compiles this file with -mvaes
// -mavx512f -mavx512bw.

#if defined(__x86_64__)

#if !defined(__VAES__)
#error "compile this file with -mvaes -mavx512f -mavx512bw"
#endif

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about its own intrinsics, which leave a register undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include "search/cpu/aes_lanes_code.hpp"

namespace warpcipher::search::cpu {
namespace {

struct Vector {
  static constexpr int words = 16;

  __m512i v;

  static WARPCIPHER_INLINE Vector load(const void* data) { return {_mm512_loadu_si512(data)}; }
  static WARPCIPHER_INLINE Vector broadcast(std::uint32_t word) { return {_mm512_set1_epi32(static_cast<int>(word))}; }
  static WARPCIPHER_INLINE Vector broadcast128(const std::uint8_t* bytes) {
    return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))};
  }
  static WARPCIPHER_INLINE Vector zero() { return {_mm512_setzero_si512()}; }
  static WARPCIPHER_INLINE Vector encrypt(Vector a, Vector k) { return {_mm512_aesenc_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector encrypt_last(Vector a, Vector k) { return {_mm512_aesenclast_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector decrypt(Vector a, Vector k) { return {_mm512_aesdec_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector decrypt_last(Vector a, Vector k) { return {_mm512_aesdeclast_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector shuffle(Vector a, Vector order) { return {_mm512_shuffle_epi8(a.v, order.v)}; }
  static WARPCIPHER_INLINE Vector low32(Vector a, Vector b) { return {_mm512_unpacklo_epi32(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector high32(Vector a, Vector b) { return {_mm512_unpackhi_epi32(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector low64(Vector a, Vector b) { return {_mm512_unpacklo_epi64(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector high64(Vector a, Vector b) { return {_mm512_unpackhi_epi64(a.v, b.v)}; }
  static WARPCIPHER_INLINE std::uint32_t equal(Vector a, Vector b) { return _mm512_cmpeq_epi32_mask(a.v, b.v); }

  friend WARPCIPHER_INLINE Vector operator^(Vector a, Vector b) { return {_mm512_xor_si512(a.v, b.v)}; }
  friend WARPCIPHER_INLINE Vector operator&(Vector a, Vector b) { return {_mm512_and_si512(a.v, b.v)}; }
};

}  // namespace

constinit const AesLanes aes_lanes_vaes512 = make_aes_lanes<Vector>("vaes512");

}  // namespace warpcipher::search::cpu

#endif
