// SPDX-License-Identifier: Apache-2.0
// ChaCha20 sixteen blocks at a time, on vectors of sixteen words. `Words` has the instructions: those of AVX-512
// (chacha_lanes_avx512.cpp), or what the manual says of them, so that the rest is tested on any processor. In an
// unnamed namespace, as chacha_lanes_code.hpp.
#pragma once

#include "engine/cpu/chacha_lanes_code.hpp"

namespace warpcipher::cpu {
namespace {

template <class Words>
struct SixteenBlocks : Words {
  using Vector = typename Words::Vector;
  static constexpr std::size_t blocks = 16;

  // Vector j is block j.
  template <class Sink>
  [[gnu::always_inline]] static inline void to_blocks(Vector (&x)[16], const Sink& sink) {
    to_columns(x);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) sink(i, x[i]);
  }

  // Of words: 2 by 2, 4 by 4 in each quarter; then of the quarters.
  [[gnu::always_inline]] static inline void to_columns(Vector (&x)[16]) {
    Vector pairs[16], fours[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = Words::unpack_low32(x[i], x[i + 1]);
      pairs[i + 1] = Words::unpack_high32(x[i], x[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        fours[i + 2 * j] = Words::unpack_low64(pairs[i + j], pairs[i + j + 2]);
        fours[i + 2 * j + 1] = Words::unpack_high64(pairs[i + j], pairs[i + j + 2]);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const Vector even01 = Words::template take_quarters<0x88>(fours[k], fours[k + 4]);
      const Vector odd01 = Words::template take_quarters<0xdd>(fours[k], fours[k + 4]);
      const Vector even23 = Words::template take_quarters<0x88>(fours[k + 8], fours[k + 12]);
      const Vector odd23 = Words::template take_quarters<0xdd>(fours[k + 8], fours[k + 12]);
      x[k] = Words::template take_quarters<0x88>(even01, even23);
      x[k + 4] = Words::template take_quarters<0x88>(odd01, odd23);
      x[k + 8] = Words::template take_quarters<0xdd>(even01, even23);
      x[k + 12] = Words::template take_quarters<0xdd>(odd01, odd23);
    }
  }
};

}  // namespace
}  // namespace warpcipher::cpu
