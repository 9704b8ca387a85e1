// SPDX-License-Identifier: Apache-2.0
// Numbers modulo 2^130 - 5 as words of 32 bits, for host and device. Constant time.
//
// The upper four bits of each word of r are clear, and the lower two of all but the first. So the products of a number
// and r, which fold 2^130 into 5, are sums of four that 64 bits hold, and text needs no limbs: a step of Poly1305 takes
// 43 instructions of a GPU, 19 of them products, where limbs of 26 bits (poly1305.hpp) take 25 products and as much
// around them again. Powers of r have no such bits, and are multiplied as limbs.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cipher/poly1305.hpp"
#include "cipher/wide_product.hpp"
#include "core/host_device.hpp"

namespace warpcipher::poly1305 {

// Results of the functions here have a last word of at most 4.
struct Number {
  std::uint32_t words[5];
};

// r as a key has it, 22 of its bits cleared; and the words by which 2^128 folds: 5/4 of each but the first.
struct Multiplier {
  std::uint32_t r[4];
  std::uint32_t s[4];

  WARPCIPHER_INLINE explicit constexpr Multiplier(const std::uint32_t (&clamped)[4]) : r{}, s{} {
    for (int i = 0; i < 4; ++i) {
      r[i] = clamped[i];
      s[i] = r[i] + (r[i] >> 2);
    }
  }
};

// x + b + high 2^128
WARPCIPHER_INLINE constexpr Number add(const Number& x, const std::uint32_t (&b)[4], std::uint32_t high) {
  Number result{};
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    asm("add.cc.u32 %0, %5, %10;\n\t"
        "addc.cc.u32 %1, %6, %11;\n\t"
        "addc.cc.u32 %2, %7, %12;\n\t"
        "addc.cc.u32 %3, %8, %13;\n\t"
        "addc.u32 %4, %9, %14;"
        : "=r"(result.words[0]), "=r"(result.words[1]), "=r"(result.words[2]), "=r"(result.words[3]),
          "=r"(result.words[4])
        : "r"(x.words[0]), "r"(x.words[1]), "r"(x.words[2]), "r"(x.words[3]), "r"(x.words[4]), "r"(b[0]), "r"(b[1]),
          "r"(b[2]), "r"(b[3]), "r"(high));
    return result;
  }
#endif
  std::uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += std::uint64_t{x.words[i]} + b[i];
    result.words[i] = static_cast<std::uint32_t>(sum);
    sum >>= 32;
  }
  result.words[4] = x.words[4] + static_cast<std::uint32_t>(sum) + high;
  return result;
}

// The same number: the part above 2^130 is added five times. The last word is less than 3 2^30.
WARPCIPHER_INLINE constexpr Number fold(const Number& x) {
  const std::uint32_t above = x.words[4] & ~3u;
  const std::uint32_t five_times[4] = {above + (above >> 2), 0, 0, 0};
  return add({{x.words[0], x.words[1], x.words[2], x.words[3], x.words[4] & 3}}, five_times, 0);
}

// x r; the last word of x is at most 7.
WARPCIPHER_INLINE constexpr Number multiply(const Number& x, const Multiplier& m) {
  const std::uint32_t(&h)[5] = x.words;
  const std::uint64_t d0 =
      wide_product(h[0], m.r[0]) + wide_product(h[1], m.s[3]) + wide_product(h[2], m.s[2]) + wide_product(h[3], m.s[1]);
  std::uint64_t d1 = wide_product(h[0], m.r[1]) + wide_product(h[1], m.r[0]) + wide_product(h[2], m.s[3]) +
                     wide_product(h[3], m.s[2]) + wide_product(h[4], m.s[1]);
  std::uint64_t d2 = wide_product(h[0], m.r[2]) + wide_product(h[1], m.r[1]) + wide_product(h[2], m.r[0]) +
                     wide_product(h[3], m.s[3]) + wide_product(h[4], m.s[2]);
  std::uint64_t d3 = wide_product(h[0], m.r[3]) + wide_product(h[1], m.r[2]) + wide_product(h[2], m.r[1]) +
                     wide_product(h[3], m.r[0]) + wide_product(h[4], m.s[3]);
  d1 += d0 >> 32;
  d2 += d1 >> 32;
  d3 += d2 >> 32;
  return fold({{static_cast<std::uint32_t>(d0), static_cast<std::uint32_t>(d1), static_cast<std::uint32_t>(d2),
                static_cast<std::uint32_t>(d3), h[4] * m.r[0] + static_cast<std::uint32_t>(d3 >> 32)}});
}

// The limbs of x, whose last word is at most 7: the last is below 2^27.
WARPCIPHER_INLINE constexpr Element to_element(const Number& x) {
  const std::uint32_t(&w)[5] = x.words;
  return {{w[0] & limb_mask, (w[0] >> 26 | w[1] << 6) & limb_mask, (w[1] >> 20 | w[2] << 12) & limb_mask,
           (w[2] >> 14 | w[3] << 18) & limb_mask, w[3] >> 8 | w[4] << 24}};
}

WARPCIPHER_INLINE constexpr Number to_number(const Element& x) {
  const std::uint32_t(&l)[5] = x.limbs;
  const std::uint32_t upper[4] = {0, l[2] << 20, l[3] << 14, l[4] << 8};
  return add({{l[0] | l[1] << 26, l[1] >> 6, l[2] >> 12, l[3] >> 18, l[4] >> 24}}, upper, 0);
}

WARPCIPHER_INLINE constexpr Number multiply(const Number& x, const Element& factor) {
  return to_number(multiply(to_element(x), factor));
}

// The tag: (x mod p + s) mod 2^128. The last word of x is at most 7.
WARPCIPHER_INLINE constexpr void make_tag(const Number& x, const std::uint32_t (&s)[4], std::uint32_t (&tag)[4]) {
  const Number folded = fold(x);
  const std::uint32_t five[4] = {5, 0, 0, 0};
  const Number less = add(folded, five, 0);
  const std::uint32_t take = 0 - (less.words[4] >> 2);  // all ones: it is p or more
  Number chosen{};
  for (int i = 0; i < 4; ++i) chosen.words[i] = (folded.words[i] & ~take) | (less.words[i] & take);
  chosen = add(chosen, s, 0);
  for (int i = 0; i < 4; ++i) tag[i] = chosen.words[i];
}

}  // namespace warpcipher::poly1305
