// SPDX-License-Identifier: Apache-2.0
// AES four blocks at a time in each vector: VAES and VPCLMULQDQ on 512 bits. The build compiles this file, and no
// other, for them.

#if defined(__x86_64__)

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__VAES__) || !defined(__VPCLMULQDQ__)
#error "compile this file with -mavx512f -mavx512bw -maes -mpclmul -mvaes -mvpclmulqdq"
#endif

#if defined(__GNUC__) && !defined(__clang__)
// The intrinsics of GCC 12 are reported for a register that they leave undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "engine/cpu/aes_lanes_code.hpp"
#include "engine/cpu/gcm_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

struct FourBlocks {
  using Vector = __m512i;
  static constexpr std::size_t blocks = 4;
  static constexpr std::size_t vectors = 8;  // in flight

  static Vector from_block(__m128i block) { return _mm512_broadcast_i32x4(block); }
  static Vector first_block(__m128i block) { return _mm512_zextsi128_si512(block); }  // and zeros
  static __m128i first_of(Vector v) { return _mm512_castsi512_si128(v); }
  static __m128i sum_of_blocks(Vector v) {
    const __m256i halves = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  }
  static Vector counters() { return _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0); }
  static Vector load(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::uint8_t* p, Vector v) { _mm512_storeu_si512(p, v); }
  static void store_past_cache(std::uint8_t* p, Vector v) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), v); }
  static Vector add_words(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector add_longs(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm512_xor_si512(a, b); }
  static Vector add_three(Vector a, Vector b, Vector c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
  static Vector swap_bytes(Vector v) { return _mm512_shuffle_epi8(v, from_block(reversing_bytes())); }
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
  // `before`, then the blocks of v but the last.
  static Vector shift_in(__m128i before, Vector v) { return _mm512_alignr_epi64(v, from_block(before), 6); }
  template <int Halves>
  static Vector multiply(Vector a, Vector b) {
    return _mm512_clmulepi64_epi128(a, b, Halves);
  }
};

}  // namespace

namespace {
constinit const AesLanes aes_past_cache = make_aes_lanes<PastCache<FourBlocks>>("vaes512", nullptr);
constinit const GcmLanes gcm_past_cache = make_gcm_lanes<PastCache<FourBlocks>, FourBlocks>("vaes512", nullptr);
}  // namespace

constinit const AesLanes aes_lanes_vaes512 = make_aes_lanes<FourBlocks>("vaes512", &aes_past_cache);
constinit const GcmLanes gcm_lanes_vaes512 = make_gcm_lanes<FourBlocks, FourBlocks>("vaes512", &gcm_past_cache);

}  // namespace warpcipher::cpu

#endif
