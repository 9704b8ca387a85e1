// SPDX-License-Identifier: Apache-2.0
// Any three-input boolean function, bit by bit over a word: one LOP3 on a GPU, one VPTERNLOG with AVX-512,
// the cheapest two-input operations elsewhere. The S-box circuits are made of nothing else.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__AVX512F__) && !defined(__CUDA_ARCH__)
#include <immintrin.h>
#endif

#include "cipher/lut3_expressions.hpp"
#include "core/host_device.hpp"

namespace warpcipher {

// Bit i of the result is bit (a_i << 2 | b_i << 1 | c_i) of Table: the convention of LOP3 and VPTERNLOG,
// where a, b and c stand for 0xf0, 0xcc and 0xaa. Word: std::uint32_t, std::uint64_t, or a GCC vector of
// 64-bit elements.
template <unsigned Table, class Word>
WARPCIPHER_INLINE constexpr Word lut3(Word a, Word b, Word c) {
  static_assert(Table < 256, "a three-input table has eight bits");
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Word, std::uint32_t>) {
    if (!std::is_constant_evaluated()) {
      std::uint32_t d;
      asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(Table));
      return d;
    }
  }
#elif defined(__AVX512F__)
  if constexpr (sizeof(Word) == sizeof(__m512i)) {
    return reinterpret_cast<Word>(_mm512_ternarylogic_epi64(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b),
                                                            reinterpret_cast<__m512i>(c), Table));
  }
#endif
  return detail::Lut3Expression<Table>::apply(a, b, c);
}

}  // namespace warpcipher
