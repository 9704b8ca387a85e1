// SPDX-License-Identifier: Apache-2.0
// AES key search on 128-bit vectors: the AES instructions that nearly every 64-bit x86 processor has. The build
// compiles this file with -maes -mssse3.

#if defined(__x86_64__)

#if !defined(__AES__)
#error "compile this file with -maes -mssse3"
#endif

#include <immintrin.h>

#include "search/cpu/aes_lanes_code.hpp"

namespace warpcipher::search::cpu {
namespace {

struct Vector {
  static constexpr int words = 4;

  __m128i v;

  static WARPCIPHER_INLINE Vector load(const void* data) { return {_mm_loadu_si128(static_cast<const __m128i*>(data))}; }
  static WARPCIPHER_INLINE Vector broadcast(std::uint32_t word) { return {_mm_set1_epi32(static_cast<int>(word))}; }
  static WARPCIPHER_INLINE Vector broadcast128(const std::uint8_t* bytes) {
    return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))};
  }
  static WARPCIPHER_INLINE Vector zero() { return {_mm_setzero_si128()}; }
  static WARPCIPHER_INLINE Vector encrypt(Vector a, Vector k) { return {_mm_aesenc_si128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector encrypt_last(Vector a, Vector k) { return {_mm_aesenclast_si128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector decrypt(Vector a, Vector k) { return {_mm_aesdec_si128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector decrypt_last(Vector a, Vector k) { return {_mm_aesdeclast_si128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector shuffle(Vector a, Vector order) { return {_mm_shuffle_epi8(a.v, order.v)}; }
  static WARPCIPHER_INLINE Vector low32(Vector a, Vector b) { return {_mm_unpacklo_epi32(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector high32(Vector a, Vector b) { return {_mm_unpackhi_epi32(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector low64(Vector a, Vector b) { return {_mm_unpacklo_epi64(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector high64(Vector a, Vector b) { return {_mm_unpackhi_epi64(a.v, b.v)}; }
  static WARPCIPHER_INLINE std::uint32_t equal(Vector a, Vector b) {
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(a.v, b.v))));
  }

  friend WARPCIPHER_INLINE Vector operator^(Vector a, Vector b) { return {_mm_xor_si128(a.v, b.v)}; }
  friend WARPCIPHER_INLINE Vector operator&(Vector a, Vector b) { return {_mm_and_si128(a.v, b.v)}; }
};

}  // namespace

constinit const AesLanes aes_lanes_aesni = make_aes_lanes<Vector>("aesni");

}  // namespace warpcipher::search::cpu

#endif
