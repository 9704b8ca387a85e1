// SPDX-License-Identifier: Apache-2.0
// Any three-input boolean function, bit by bit over a word: one LOP3 on a GPU, one VPTERNLOG with AVX-512,
// the cheapest two-input operations elsewhere. The S-box circuits are made of nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#if defined(__AVX512F__) && !defined(__CUDA_ARCH__)
#include <immintrin.h>
#endif

#include "core/host_device.hpp"

namespace warpcipher {
namespace detail {

// For each of the 256 tables, in their order, the fewest operations of two inputs that make it, as a search through all
// of them finds: three characters each, the operation and two nodes. Nodes 0, 1 and 2 are a, b and c, the others those
// made before; the last one is the result. `-` is AND NOT; `~` takes the first node.
inline constexpr std::string_view lut3_programs =
    "^00 ~00|12-34 |01-23 ~00-31 -10-32 ~00-32 ^12-30 ~00&12-34 "
    "-10&23 ~00^12-34 -20 ~00-12-34 -10 ~00-21-34 |12-30 ~00 "
    "-01-32 ~11-32 ^02-31 ~11&02-34 ^01-32 &01~22-43 ^01&01^23-54 ^01&01&23^45~66 "
    "^01^02&34 ~11&01^23-54 &01^02-43 ~00^01-42^35 ^01&02-34 ~00^02-41^35 |12^03 |12&03~44 "
    "-01&23 ~00^23-41 -21 ~00|23-41 ^01^02-34 ~00&01^23-54 &01^12-43 ~00^01&24^35 "
    "^01&23 ^01&01^23|45~66 &01-23 ^01&01-32^45~66 ^01-02-34 ~00-21^34 &01|12^34 ~00-21|34 "
    "-01 ~11-20-34 |02-31 ~11 ^01-20-34 ~00-01-32^45 |02^13 |02&13~44 "
    "^01|02&34 ~11-20^34 &01|02^34 ~11-20|34 ^01 ~00^01-32|45 ^01-20|34 &01~33 "
    "&01-32 ~00^13-42 ^01^02-43 ~00&02^13-54 -12 ~00|13-42 -01^12-43 ~00^02&14^35 "
    "^02&13 ^01-01^23|45~66 -01^02-43 ~00-12^34 &02-13 ^01-10|23^45~66 ^01|23^04 ~00-12|34 "
    "-02 ~11|03-42 -10^02-43 ~00|01|23^45 |01-32 ~22 |01^23 |01&23~44 "
    "|01^02&34 ~11|03^24 ^02 ~00|01-42^35 |01&02^34 -10~22|34 -10^02|34 &02~33 "
    "^12&03 ^01-10^23|45~66 -10^12-43 ~00|23^14 |01^12&34 ~00|13^24 ^12 ~00^12-31|45 "
    "^01|01^23-45 ~00^12^34 &01^23 ^01|01^23&45~66 &02^13 ^01-10^23-54~66 -10^12|34 ~00^12|34 "
    "&12-03 ^01-10-23^45~66 ^01|23^14 ~11-02|34 |01&12^34 -01~22|34 -01^12|34 &12~33 "
    "&12^03 ^01-01^23-54~66 -01^02|34 ~11^02|34 ^01-02|34 ^01~22|34 ^01^02|34 &01&23~44 "
    "&01&23 ~00^01^23-54 ^01-23 ~00^01|23-54 ^02-13 ~00-01^23-54 ^01-01^23-54 ~00&12^34 "
    "&12 ~00^12|13-54 -01-23 ~00^02-14^35 -02-13 ~00^01-24^35 ^01-10-23^45 ~00&12|34 "
    "^12-03 ~11-10^23-54 ^01-10^23-54 ~11&02^34 ^01|01^23&45 &01~22^34 ^01^23 ^01|01^23-45~66 "
    "|01^12-34 ~11^23 -01^23 ~11|01&24^35 -02^13 ~11-10^23|45 ^01-10^23|45 ^12&03~44 "
    "&02 ~00-10^23-54 -10-23 ~00-10|23^45 |01^02-34 ~00^23 -10^23 ~00|01&24^35 "
    "|01&23 ~00-31^24 &22 ~00-31|24 |01-02^34 ~00-10^23|45 -10|23 ~00|23 "
    "-12-03 ~00^01|24^35 ^01-10|23^45 ~11&02|34 -12^03 ~00-01^23|45 ^01-01^23|45 ^02&13~44 "
    "|01-12^34 ~11-01^23|45 -01|23 ~11|23 ^01&02|34 ~00^01^23|45 ^01|23 &01~33|24 "
    "&01 ~00-20^13-54 ^01|02-43 ~00^13 -20-13 ~00&01-32^45 -20^13 ~00|02&14^35 "
    "|02&13 ~00-32^14 &01-20^34 ~00-20^13|45 &11 ~00-32|14 -20|13 ~00|13 "
    "-21-03 ~00^02|14^35 -21^03 ~00-02^13|45 ^01&01-32^45 &01~22|34 ^01&01^23|45 ^01&23~44 "
    "^01&23^04 ~11&01^23|45 &01^02|34 ~00^02^13|45 -02|13 ~22|13 ^02|13 -01&23~44 "
    "|12&03 ~00|12^34 &01-21^34 ~00&02^13|45 ^01&23^14 ~00&01^23|45 &01^12|34 ~00^12^13|45 "
    "^01&01&23^45 ^01&01^23-54~66 &01|23 ~00^13|24 &02|13 ~00^23|14 |12 ~00|12|34 "
    "&00 ~11-32|04 -21|03 ~11|03 -12|03 ~22|03 ^12|03 -10&23~44 "
    "&12|03 ~11^23|04 |02 ~11|02|34 |01 |01~22|34 |01|23 ^00~33";

constexpr std::string_view find_lut3_program(unsigned table) {
  std::string_view rest = lut3_programs;
  for (; table != 0; --table) rest.remove_prefix(rest.find(' ') + 1);
  return rest.substr(0, rest.find(' '));
}

template <unsigned Table>
inline constexpr std::string_view lut3_program = find_lut3_program(Table);

// Not by an array of nodes: that changes the machine code of kernels around it.
template <unsigned Table, std::size_t Node, class Word>
WARPCIPHER_INLINE constexpr Word lut3_node(Word a, Word b, Word c) {
  if constexpr (Node < 3) {
    return Node == 0 ? a : Node == 1 ? b : c;
  } else {
    constexpr std::string_view step = lut3_program<Table>.substr(3 * (Node - 3), 3);
    const Word x = lut3_node<Table, step[1] - '0'>(a, b, c), y = lut3_node<Table, step[2] - '0'>(a, b, c);
    if constexpr (step[0] == '~') return ~x;
    if constexpr (step[0] == '&') return x & y;
    if constexpr (step[0] == '|') return x | y;
    if constexpr (step[0] == '^') return x ^ y;
    if constexpr (step[0] == '-') return x & ~y;
  }
}

}  // namespace detail

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
  return detail::lut3_node<Table, 2 + detail::lut3_program<Table>.size() / 3>(a, b, c);
}

}  // namespace warpcipher
