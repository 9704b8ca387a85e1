// SPDX-License-Identifier: Apache-2.0
// The source of the engine's AES with four blocks in a vector, as for AVX-512, of which each is a vector of 128 bits:
// so its arithmetic of blocks and tweaks is tested on processors without AVX-512.

#if defined(__x86_64__)

#include "engine/cpu/aes_code.hpp"
#include "engine/cpu/gcm_code.hpp"

namespace warpcipher::cpu {
namespace {

struct FourBlocks {
  struct Vector {
    __m128i block[4];
  };
  static constexpr std::size_t blocks = 4;
  static constexpr const char* name = "four_blocks";

  template <class Work>
  [[gnu::noinline]] static Vector each(const Work& work) {
    return {{work(0), work(1), work(2), work(3)}};
  }
  static Vector from_block(__m128i block) { return {{block, block, block, block}}; }
  static Vector first_block(__m128i block) {
    const __m128i zero = _mm_setzero_si128();
    return {{block, zero, zero, zero}};
  }
  static __m128i sum_of_blocks(Vector v) {
    return _mm_xor_si128(_mm_xor_si128(v.block[0], v.block[1]), _mm_xor_si128(v.block[2], v.block[3]));
  }
  static Vector counters() {
    return each([](int i) { return _mm_set_epi64x(0, i); });
  }
  static Vector load(const std::uint8_t* p) {
    return each([&](int i) { return load_block(p + 16 * i); });
  }
  static void store(std::uint8_t* p, Vector v) {
    for (int i = 0; i < 4; ++i) store_block(p + 16 * i, v.block[i]);
  }
  static void store_past_cache(std::uint8_t* p, Vector v) {
    for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(p + 16 * i), v.block[i]);
  }
  static Vector add_words(Vector a, Vector b) {
    return each([&](int i) { return _mm_add_epi32(a.block[i], b.block[i]); });
  }
  static Vector add_longs(Vector a, Vector b) {
    return each([&](int i) { return _mm_add_epi64(a.block[i], b.block[i]); });
  }
  static Vector exclusive_or(Vector a, Vector b) {
    return each([&](int i) { return _mm_xor_si128(a.block[i], b.block[i]); });
  }
  static Vector shuffle(Vector v, Vector order) {
    return each([&](int i) { return _mm_shuffle_epi8(v.block[i], order.block[i]); });
  }
  static Vector swap_halves(Vector v) {
    return each([&](int i) { return _mm_shuffle_epi32(v.block[i], 0x4e); });
  }
  static Vector encrypt_round(Vector v, Vector key) {
    return each([&](int i) { return _mm_aesenc_si128(v.block[i], key.block[i]); });
  }
  static Vector encrypt_last(Vector v, Vector key) {
    return each([&](int i) { return _mm_aesenclast_si128(v.block[i], key.block[i]); });
  }
  static Vector decrypt_round(Vector v, Vector key) {
    return each([&](int i) { return _mm_aesdec_si128(v.block[i], key.block[i]); });
  }
  static Vector decrypt_last(Vector v, Vector key) {
    return each([&](int i) { return _mm_aesdeclast_si128(v.block[i], key.block[i]); });
  }
  static Vector shift_left(Vector v, Vector bits) {
    return each([&](int i) { return _mm_sll_epi64(v.block[i], bits.block[i]); });
  }
  static Vector shift_right(Vector v, Vector bits) {
    return each([&](int i) { return _mm_srl_epi64(v.block[i], bits.block[i]); });
  }
  template <int Bytes>
  static Vector shift_bytes_left(Vector v) {
    return each([&](int i) { return _mm_slli_si128(v.block[i], Bytes); });
  }
  template <int Bytes>
  static Vector shift_bytes_right(Vector v) {
    return each([&](int i) { return _mm_srli_si128(v.block[i], Bytes); });
  }
  static Vector shift_in(__m128i before, Vector v) { return {{before, v.block[0], v.block[1], v.block[2]}}; }
  template <int Halves>
  static Vector multiply(Vector a, Vector b) {
    return each([&](int i) { return _mm_clmulepi64_si128(a.block[i], b.block[i], Halves); });
  }
};

}  // namespace

extern const AesLanes aes_lanes_four_blocks;
constinit const AesLanes aes_lanes_four_blocks = aes_lanes<FourBlocks>;
extern const GcmLanes gcm_lanes_four_blocks;
constinit const GcmLanes gcm_lanes_four_blocks = gcm_lanes<FourBlocks>;

}  // namespace warpcipher::cpu

#endif
