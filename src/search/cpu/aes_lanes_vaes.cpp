// SPDX-License-Identifier: Apache-2.0
// AES key search on 256-bit vectors: two AES blocks for each instruction. The build compiles this file with -mvaes
// -mavx2.

#if defined(__x86_64__)

#if !defined(__VAES__)
#error "compile this file with -mvaes -mavx2"
#endif

#include <immintrin.h>

#include "search/cpu/aes_lanes_code.hpp"

namespace warpcipher::search::cpu {
namespace {

struct Vector {
  static constexpr int words = 8;

  __m256i v;

  static WARPCIPHER_INLINE Vector load(const void* data) { return {_mm256_loadu_si256(static_cast<const __m256i*>(data))}; }
  static WARPCIPHER_INLINE Vector broadcast(std::uint32_t word) { return {_mm256_set1_epi32(static_cast<int>(word))}; }
  static WARPCIPHER_INLINE Vector broadcast128(const std::uint8_t* bytes) {
    return {_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))};
  }
  static WARPCIPHER_INLINE Vector zero() { return {_mm256_setzero_si256()}; }
  static WARPCIPHER_INLINE Vector encrypt(Vector a, Vector k) { return {_mm256_aesenc_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector encrypt_last(Vector a, Vector k) { return {_mm256_aesenclast_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector decrypt(Vector a, Vector k) { return {_mm256_aesdec_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector decrypt_last(Vector a, Vector k) { return {_mm256_aesdeclast_epi128(a.v, k.v)}; }
  static WARPCIPHER_INLINE Vector shuffle(Vector a, Vector order) { return {_mm256_shuffle_epi8(a.v, order.v)}; }
  static WARPCIPHER_INLINE Vector low32(Vector a, Vector b) { return {_mm256_unpacklo_epi32(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector high32(Vector a, Vector b) { return {_mm256_unpackhi_epi32(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector low64(Vector a, Vector b) { return {_mm256_unpacklo_epi64(a.v, b.v)}; }
  static WARPCIPHER_INLINE Vector high64(Vector a, Vector b) { return {_mm256_unpackhi_epi64(a.v, b.v)}; }
  static WARPCIPHER_INLINE std::uint32_t equal(Vector a, Vector b) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))));
  }

  friend WARPCIPHER_INLINE Vector operator^(Vector a, Vector b) { return {_mm256_xor_si256(a.v, b.v)}; }
  friend WARPCIPHER_INLINE Vector operator&(Vector a, Vector b) { return {_mm256_and_si256(a.v, b.v)}; }
};

}  // namespace

constinit const AesLanes aes_lanes_vaes = make_aes_lanes<Vector>("vaes");

}  // namespace warpcipher::search::cpu

#endif
