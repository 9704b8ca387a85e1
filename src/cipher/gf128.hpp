// SPDX-License-Identifier: Apache-2.0
// GF(2^128) modulo x^128 + x^7 + x^2 + x + 1, in the two bit orders that use it: GCM's (SP 800-38D, section 6.3, where
// the first bit of a block is the coefficient of x^0) and XTS's (IEEE 1619, little-endian). Constant time in the
// elements; exponents and counts are public.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cipher/wide_product.hpp"
#include "core/bytes.hpp"
#include "core/host_device.hpp"

namespace warpcipher::gf128 {

// A block as two big-endian halves. Coefficient of x^i, by bit of a half (63 the most significant):
//
//   high  bit 63 62 ...  0      low  bit  63  62 ...   0
//   x^         0  1 ... 63               64  65 ... 127
struct Element {
  std::uint64_t high;
  std::uint64_t low;
  friend constexpr bool operator==(const Element&, const Element&) = default;
};

// The 256-bit product before reduction, words[0] the least significant.
struct Product {
  std::uint64_t words[4];
};

WARPCIPHER_HD constexpr Element load(const std::uint8_t* block) { return {load_be64(block), load_be64(block + 8)}; }

WARPCIPHER_HD constexpr void store(std::uint8_t* block, Element a) {
  store_be64(block, a.high);
  store_be64(block + 8, a.low);
}

WARPCIPHER_HD constexpr Element add(Element a, Element b) { return {a.high ^ b.high, a.low ^ b.low}; }

inline constexpr Element gcm_one{0x8000000000000000u, 0};

namespace detail {

// How a GPU multiplies integers: plainly, or by wide_product(). In the XTS kernels, which hardly multiply, the wide
// instruction spills registers.
enum class Factors { plain, wide };

template <Factors Kind>
WARPCIPHER_INLINE constexpr std::uint64_t multiply_integers(std::uint32_t a, std::uint32_t b) {
  return Kind == Factors::wide ? wide_product(a, b) : std::uint64_t{a} * b;
}

// Product of two polynomials of degree below 32 over GF(2), bit i the coefficient of x^i. Each factor is cut into four
// with three zeros between its bits; an integer product then adds at most eight ones in each place, which carry into
// the zeros and no further, so the lowest bit of every fourth place is the sum modulo 2.
template <Factors Kind>
WARPCIPHER_INLINE constexpr std::uint64_t multiply32(std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t every_fourth = 0x11111111u;
  const std::uint32_t a0 = a & every_fourth;
  const std::uint32_t a1 = a & every_fourth << 1;
  const std::uint32_t a2 = a & every_fourth << 2;
  const std::uint32_t a3 = a & every_fourth << 3;
  const std::uint32_t b0 = b & every_fourth;
  const std::uint32_t b1 = b & every_fourth << 1;
  const std::uint32_t b2 = b & every_fourth << 2;
  const std::uint32_t b3 = b & every_fourth << 3;
  constexpr auto product = [](std::uint32_t x, std::uint32_t y) { return multiply_integers<Kind>(x, y); };
  constexpr std::uint64_t places = 0x1111111111111111u;
  return ((product(a0, b0) ^ product(a1, b3) ^ product(a2, b2) ^ product(a3, b1)) & places) |
         ((product(a0, b1) ^ product(a1, b0) ^ product(a2, b3) ^ product(a3, b2)) & places << 1) |
         ((product(a0, b2) ^ product(a1, b1) ^ product(a2, b0) ^ product(a3, b3)) & places << 2) |
         ((product(a0, b3) ^ product(a1, b2) ^ product(a2, b1) ^ product(a3, b0)) & places << 3);
}

// Karatsuba: two 64-bit factors, three products of 32 bits.
template <Factors Kind>
WARPCIPHER_INLINE constexpr void multiply64(std::uint64_t& high, std::uint64_t& low, std::uint64_t a, std::uint64_t b) {
  const auto a0 = static_cast<std::uint32_t>(a);
  const auto a1 = static_cast<std::uint32_t>(a >> 32);
  const auto b0 = static_cast<std::uint32_t>(b);
  const auto b1 = static_cast<std::uint32_t>(b >> 32);
  const std::uint64_t bottom = multiply32<Kind>(a0, b0);
  const std::uint64_t top = multiply32<Kind>(a1, b1);
  const std::uint64_t middle = multiply32<Kind>(a0 ^ a1, b0 ^ b1) ^ bottom ^ top;
  low = bottom ^ middle << 32;
  high = top ^ middle >> 32;
}

}  // namespace detail

// The product of a and b as polynomials whose coefficient of x^i is bit i of (high, low), unreduced.
template <detail::Factors Kind = detail::Factors::plain>
WARPCIPHER_HD constexpr Product carryless_multiply(Element a, Element b) {
  std::uint64_t bottom[2] = {};
  std::uint64_t top[2] = {};
  std::uint64_t middle[2] = {};
  detail::multiply64<Kind>(bottom[1], bottom[0], a.low, b.low);
  detail::multiply64<Kind>(top[1], top[0], a.high, b.high);
  detail::multiply64<Kind>(middle[1], middle[0], a.low ^ a.high, b.low ^ b.high);
  middle[0] ^= bottom[0] ^ top[0];
  middle[1] ^= bottom[1] ^ top[1];
  return {{bottom[0], bottom[1] ^ middle[0], top[0] ^ middle[1], top[1]}};
}

WARPCIPHER_HD constexpr Product add(const Product& a, const Product& b) {
  return {{a.words[0] ^ b.words[0], a.words[1] ^ b.words[1], a.words[2] ^ b.words[2], a.words[3] ^ b.words[3]}};
}

// --- GCM -------------------------------------------------------------------------------------------------------------

// A product of two elements in GCM's order, reduced. The order reversed makes bit i of the product the coefficient of
// x^(254 - i); one shift puts x^0 at bit 255, and x^128 = x^7 + x^2 + x + 1 folds the low half into the high half.
// Linear: sums of products may be reduced once.
WARPCIPHER_HD constexpr Element gcm_reduce(const Product& product) {
  const std::uint64_t x0 = product.words[3] << 1 | product.words[2] >> 63;  // x^0 to x^63
  std::uint64_t x1 = product.words[2] << 1 | product.words[1] >> 63;
  std::uint64_t x2 = product.words[1] << 1 | product.words[0] >> 63;
  const std::uint64_t x3 = product.words[0] << 1;  // x^192 to x^255
  x2 ^= x3 << 63 ^ x3 << 62 ^ x3 << 57;
  x1 ^= x3 ^ x3 >> 1 ^ x3 >> 2 ^ x3 >> 7;
  x1 ^= x2 << 63 ^ x2 << 62 ^ x2 << 57;
  return {x0 ^ x2 ^ x2 >> 1 ^ x2 >> 2 ^ x2 >> 7, x1};
}

// X * Y (SP 800-38D, section 6.3).
WARPCIPHER_HD constexpr Element gcm_multiply(Element a, Element b) {
  return gcm_reduce(carryless_multiply<detail::Factors::wide>(a, b));
}

namespace detail {

// Zeros between the bits: the square of a polynomial over GF(2).
WARPCIPHER_INLINE constexpr std::uint64_t spread(std::uint32_t x) {
  std::uint64_t wide = x;
  wide = (wide | wide << 16) & 0x0000ffff0000ffffu;
  wide = (wide | wide << 8) & 0x00ff00ff00ff00ffu;
  wide = (wide | wide << 4) & 0x0f0f0f0f0f0f0f0fu;
  wide = (wide | wide << 2) & 0x3333333333333333u;
  return (wide | wide << 1) & 0x5555555555555555u;
}

}  // namespace detail

// X * X, a fifth of the work of a product.
WARPCIPHER_HD constexpr Element gcm_square(Element a) {
  return gcm_reduce(
      {{detail::spread(static_cast<std::uint32_t>(a.low)), detail::spread(static_cast<std::uint32_t>(a.low >> 32)),
        detail::spread(static_cast<std::uint32_t>(a.high)), detail::spread(static_cast<std::uint32_t>(a.high >> 32))}});
}

// h^n; n = 0 gives 1. The time depends on n, which is public.
WARPCIPHER_HD constexpr Element gcm_power(Element h, std::uint64_t n) {
  Element result = gcm_one;
  for (; n != 0; n >>= 1) {
    if (n & 1) result = gcm_multiply(result, h);
    h = gcm_square(h);
  }
  return result;
}

// GHASH_H over `blocks` whole blocks, continuing from `hash` (zero at the start): SP 800-38D, section 6.4.
WARPCIPHER_HD constexpr Element ghash(Element hash, Element h, const std::uint8_t* data, std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; ++i) hash = gcm_multiply(add(hash, load(data + 16 * i)), h);
  return hash;
}

// --- POLYVAL (RFC 8452, section 3) -----------------------------------------------------------------------------------
//
// It is GHASH with the bytes of every block reversed, under x times the key (appendix A). So GHASH's code computes it:
// load blocks and the key, and store the sum, by these functions.

WARPCIPHER_HD constexpr Element load_reversed(const std::uint8_t* block) {
  return {load_le64(block + 8), load_le64(block)};
}

WARPCIPHER_HD constexpr void store_reversed(std::uint8_t* block, Element a) {
  store_le64(block, a.low);
  store_le64(block + 8, a.high);
}

// GHASH's hash key for POLYVAL's: x H (mulX_GHASH). h: as load_reversed() gives it.
WARPCIPHER_HD constexpr Element polyval_key(Element h) {
  const std::uint64_t leaving = 0 - (h.low & 1);
  return {h.high >> 1 ^ (leaving & 0xe100000000000000u), h.high << 63 | h.low >> 1};
}

WARPCIPHER_HD constexpr Element load_polyval_key(const std::uint8_t* key) { return polyval_key(load_reversed(key)); }

// POLYVAL of `blocks` whole blocks, continuing from `hash`; h of load_polyval_key().
WARPCIPHER_HD constexpr Element polyval(Element hash, Element h, const std::uint8_t* data, std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; ++i) hash = gcm_multiply(add(hash, load_reversed(data + 16 * i)), h);
  return hash;
}

namespace reference {

// Algorithm 1 of SP 800-38D, section 6.3, one bit of x a step. Not constant time.
constexpr Element gcm_multiply(Element x, Element y) {
  Element z{};
  Element v = y;
  for (int i = 0; i < 128; ++i) {
    if ((i < 64 ? x.high >> (63 - i) : x.low >> (127 - i)) & 1) z = add(z, v);
    const bool carry = v.low & 1;
    v = {v.high >> 1, v.high << 63 | v.low >> 1};
    if (carry) v.high ^= 0xe100000000000000u;  // R
  }
  return z;
}

// As gf128::ghash, by algorithm 1. Not constant time.
constexpr Element ghash(Element hash, Element h, const std::uint8_t* data, std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; ++i) hash = reference::gcm_multiply(add(hash, load(data + 16 * i)), h);
  return hash;
}

}  // namespace reference

// --- XTS -------------------------------------------------------------------------------------------------------------

// A tweak (IEEE 1619, section 5.2): a block as two little-endian halves. Coefficient of x^i: bit i of (high, low).
struct Tweak {
  std::uint64_t low;
  std::uint64_t high;
  friend constexpr bool operator==(const Tweak&, const Tweak&) = default;
};

WARPCIPHER_HD constexpr Tweak load_tweak(const std::uint8_t* block) { return {load_le64(block), load_le64(block + 8)}; }

WARPCIPHER_HD constexpr void store_tweak(std::uint8_t* block, Tweak t) {
  store_le64(block, t.low);
  store_le64(block + 8, t.high);
}

namespace detail {

// Adds x^128 * leaving, which is leaving * (x^7 + x^2 + x + 1).
WARPCIPHER_INLINE constexpr Tweak fold(Tweak t, std::uint64_t leaving) {
  return {t.low ^ leaving ^ leaving << 1 ^ leaving << 2 ^ leaving << 7,
          t.high ^ leaving >> 63 ^ leaving >> 62 ^ leaving >> 57};
}

// t * x^n, n from 0 to 127: first a whole half if n is 64 or more, then the rest, so that what leaves at the top at a
// time fits 64 bits.
WARPCIPHER_INLINE constexpr Tweak shift_tweak(Tweak t, unsigned n) {
  if (n >= 64) t = fold({0, t.low}, t.high);
  const unsigned rest = n % 64;
  const unsigned back = 63 - rest;  // shifts by 64 - rest in two, as rest may be 0
  return fold({t.low << rest, t.high << rest | t.low >> 1 >> back}, t.high >> 1 >> back);
}

WARPCIPHER_HD constexpr Tweak multiply_tweaks(Tweak a, Tweak b) {
  const Product product = carryless_multiply({a.high, a.low}, {b.high, b.low});
  const Tweak upper = fold({product.words[1], product.words[2]}, product.words[3]);
  return fold({product.words[0], upper.low}, upper.high);
}

// t * x^(128 * 2^k) for k from 0 to 4: squaring x^128 = x^7 + x^2 + x + 1 k times doubles each exponent k times.
WARPCIPHER_INLINE constexpr Tweak jump_128(Tweak t, unsigned k) {
  const Tweak by7 = shift_tweak(t, 7u << k);
  const Tweak by2 = shift_tweak(t, 2u << k);
  const Tweak by1 = shift_tweak(t, 1u << k);
  return {t.low ^ by1.low ^ by2.low ^ by7.low, t.high ^ by1.high ^ by2.high ^ by7.high};
}

}  // namespace detail

// t * alpha^n: the tweak n blocks further on. Below 128 one shift; each of the next five bits of n costs three; each
// bit from 4096 on a full product. The time depends on n, which is public.
WARPCIPHER_HD constexpr Tweak jump_tweak(Tweak t, std::uint64_t n) {
  t = detail::shift_tweak(t, static_cast<unsigned>(n % 128));
  n /= 128;
  for (unsigned k = 0; k < 5; ++k) {
    if (n >> k & 1) t = detail::jump_128(t, k);
  }
  n /= 32;
  Tweak power = detail::jump_128(detail::jump_128({1, 0}, 4), 4);  // alpha^4096
  for (; n != 0; n >>= 1) {
    if (n & 1) t = detail::multiply_tweaks(t, power);
    power = detail::multiply_tweaks(power, power);
  }
  return t;
}

}  // namespace warpcipher::gf128
