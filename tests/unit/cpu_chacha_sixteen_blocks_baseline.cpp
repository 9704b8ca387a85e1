// SPDX-License-Identifier: Apache-2.0
// The code of ChaCha20 with sixteen blocks in a vector, as for AVX-512, by vectors of the compiler: so its frame and
// its order of words are tested on processors without AVX-512. The instructions are written from Intel's
// Software Developer's Manual, volume 2.

#include "engine/cpu/chacha_code.hpp"

namespace warpcipher::cpu {
namespace {

struct DefinedWords {
  struct Vector {
    std::uint32_t word[16];
  };
  static constexpr std::size_t words = 16;
  static constexpr const char* name = "sixteen_defined";

  template <class Work>
  [[gnu::noinline]] static Vector each(const Work& work) {  // inlined, it takes sanitizers twice as long to compile
    Vector made;
    for (int i = 0; i < 16; ++i) made.word[i] = work(i);
    return made;
  }

  static Vector broadcast(std::uint32_t word) {
    return each([&](int) { return word; });
  }
  static Vector numbers() {
    return each([](int i) { return static_cast<std::uint32_t>(i); });
  }
  static Vector load(const std::uint8_t* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(std::uint8_t* p, const Vector& v) { std::memcpy(p, &v, sizeof v); }
  static Vector add_words(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.word[i] + b.word[i]; });
  }
  static Vector exclusive_or(const Vector& a, const Vector& b) {
    return each([&](int i) { return a.word[i] ^ b.word[i]; });
  }

  template <int Bits>
  static Vector rotate_words(const Vector& v) {
    return each([&](int i) { return v.word[i] << Bits | v.word[i] >> (32 - Bits); });
  }

  // VPUNPCKLDQ and VPUNPCKHDQ: in each quarter of four words two of each, in turn.
  static Vector unpack_low32(const Vector& a, const Vector& b) {
    return each([&](int i) { return (i % 2 == 0 ? a : b).word[i / 4 * 4 + i % 4 / 2]; });
  }
  static Vector unpack_high32(const Vector& a, const Vector& b) {
    return each([&](int i) { return (i % 2 == 0 ? a : b).word[i / 4 * 4 + 2 + i % 4 / 2]; });
  }

  // VPUNPCKLQDQ and VPUNPCKHQDQ: the lower or upper half of each quarter.
  static Vector unpack_low64(const Vector& a, const Vector& b) {
    return each([&](int i) { return (i % 4 < 2 ? a : b).word[i / 4 * 4 + i % 2]; });
  }
  static Vector unpack_high64(const Vector& a, const Vector& b) {
    return each([&](int i) { return (i % 4 < 2 ? a : b).word[i / 4 * 4 + 2 + i % 2]; });
  }

  // VSHUFI32X4: two quarters of a and two of b, each chosen by two bits.
  template <int Chosen>
  static Vector take_blocks(const Vector& a, const Vector& b) {
    return each([&](int i) { return (i < 8 ? a : b).word[(Chosen >> i / 4 * 2 & 3) * 4 + i % 4]; });
  }
};

}  // namespace

extern const ChaChaLanes chacha_lanes_defined;
constinit const ChaChaLanes chacha_lanes_defined = chacha_lanes<DefinedWords>;

}  // namespace warpcipher::cpu
