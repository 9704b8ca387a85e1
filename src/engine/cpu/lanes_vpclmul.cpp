// SPDX-License-Identifier: Apache-2.0
// AES two blocks at a time in each vector: VAES and VPCLMULQDQ on 256 bits. The build compiles this
// file, and no other, for them.

#if defined(__x86_64__)

#if !defined(__AVX2__) || !defined(__VAES__) || !defined(__VPCLMULQDQ__)
#error "compile this file with -mavx2 -maes -mpclmul -mvaes -mvpclmulqdq"
#endif

#include "engine/cpu/aes_lanes_code.hpp"
#include "engine/cpu/gcm_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

struct TwoBlocks {
  using Vector = __m256i;
  static constexpr std::size_t blocks = 2;
  static constexpr std::size_t vectors = 8;  // in flight

  static Vector from_block(__m128i block) { return _mm256_broadcastsi128_si256(block); }
  static Vector first_block(__m128i block) { return _mm256_zextsi128_si256(block); }  // and zeros
  static __m128i sum_of_blocks(Vector v) {
    return _mm_xor_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  }
  static Vector counters() { return _mm256_set_epi32(0, 0, 0, 1, 0, 0, 0, 0); }
  static Vector load(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(std::uint8_t* p, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static void store_past_cache(std::uint8_t* p, Vector v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v); }
  static Vector add_words(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector add_longs(Vector a, Vector b) { return _mm256_add_epi64(a, b); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
  static Vector swap_bytes(Vector v) { return _mm256_shuffle_epi8(v, from_block(reversing_bytes())); }
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
  // `before`, then the blocks of v but the last.
  static Vector shift_in(__m128i before, Vector v) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(before), _mm256_castsi256_si128(v), 1);
  }
  template <int Halves>
  static Vector multiply(Vector a, Vector b) {
    return _mm256_clmulepi64_epi128(a, b, Halves);
  }
};

}  // namespace

namespace {
constinit const AesLanes aes_past_cache = make_aes_lanes<PastCache<TwoBlocks>>("vaes", nullptr);
constinit const GcmLanes gcm_past_cache = make_gcm_lanes<PastCache<TwoBlocks>, TwoBlocks>("vaes", nullptr);
}  // namespace

constinit const AesLanes aes_lanes_vaes = make_aes_lanes<TwoBlocks>("vaes", &aes_past_cache);
constinit const GcmLanes gcm_lanes_vaes = make_gcm_lanes<TwoBlocks, TwoBlocks>("vaes", &gcm_past_cache);

}  // namespace warpcipher::cpu

#endif
