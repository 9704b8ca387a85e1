// SPDX-License-Identifier: Apache-2.0
// AES a block at a time in each vector: AES-NI and PCLMULQDQ, in the three-operand forms of AVX. The
// build compiles this file, and no other, for them.

#if defined(__x86_64__)

#if !defined(__AVX__) || !defined(__AES__) || !defined(__PCLMUL__)
#error "compile this file with -mavx -maes -mpclmul"
#endif

#include "engine/cpu/aes_lanes_code.hpp"
#include "engine/cpu/gcm_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

struct OneBlock {
  using Vector = __m128i;
  static constexpr std::size_t blocks = 1;
  static constexpr std::size_t vectors = 8;  // in flight

  static Vector from_block(__m128i block) { return block; }
  static Vector first_block(__m128i block) { return block; }  // and zeros
  static __m128i sum_of_blocks(Vector v) { return v; }
  static Vector counters() { return _mm_setzero_si128(); }  // offset of each block's counter within the vector
  static Vector load(const std::uint8_t* p) { return load_block(p); }
  static void store(std::uint8_t* p, Vector v) { store_block(p, v); }
  static void store_past_cache(std::uint8_t* p, Vector v) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), v); }
  static Vector add_words(Vector a, Vector b) { return _mm_add_epi32(a, b); }
  static Vector add_longs(Vector a, Vector b) { return _mm_add_epi64(a, b); }
  static Vector exclusive_or(Vector a, Vector b) { return _mm_xor_si128(a, b); }
  static Vector swap_bytes(Vector v) { return reverse_block(v); }
  static Vector swap_halves(Vector v) { return _mm_shuffle_epi32(v, 0x4e); }
  static Vector encrypt_round(Vector v, Vector key) { return _mm_aesenc_si128(v, key); }
  static Vector encrypt_last(Vector v, Vector key) { return _mm_aesenclast_si128(v, key); }
  static Vector decrypt_round(Vector v, Vector key) { return _mm_aesdec_si128(v, key); }
  static Vector decrypt_last(Vector v, Vector key) { return _mm_aesdeclast_si128(v, key); }
  static Vector shift_left(Vector v, Vector bits) { return _mm_sll_epi64(v, bits); }
  static Vector shift_right(Vector v, Vector bits) { return _mm_srl_epi64(v, bits); }
  template <int Bytes>
  static Vector shift_bytes_left(Vector v) {
    return _mm_slli_si128(v, Bytes);
  }
  template <int Bytes>
  static Vector shift_bytes_right(Vector v) {
    return _mm_srli_si128(v, Bytes);
  }
  // `before`, then the blocks of v but the last.
  static Vector shift_in(__m128i before, Vector) { return before; }
  template <int Halves>
  static Vector multiply(Vector a, Vector b) {
    return _mm_clmulepi64_si128(a, b, Halves);
  }
};

}  // namespace

namespace {
constinit const AesLanes aes_past_cache = make_aes_lanes<PastCache<OneBlock>>("aesni", nullptr);
constinit const GcmLanes gcm_past_cache = make_gcm_lanes<PastCache<OneBlock>, OneBlock>("aesni", nullptr);
}  // namespace

constinit const AesLanes aes_lanes_aesni = make_aes_lanes<OneBlock>("aesni", &aes_past_cache);
constinit const GcmLanes gcm_lanes_aesni = make_gcm_lanes<OneBlock, OneBlock>("aesni", &gcm_past_cache);

}  // namespace warpcipher::cpu

#endif
