// SPDX-License-Identifier: Apache-2.0
// The functions of floating point that the distributions need, the same bit for bit on every processor: of IEEE 754's
// only such operations, each rounded to nearest. Multiply-add is always explicit, and no product goes into a plain sum,
// so that no compiler can join the two.
//
// The polynomials are minimax (Remez), of this project's own making: docs/design/random.md has their errors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "cipher/force_inline.hpp"

namespace warpcipher::random {

WARPCIPHER_INLINE float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

WARPCIPHER_INLINE double multiply_add(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

// For 2^-100 <= x <= 2^100.
WARPCIPHER_INLINE float square_root(float x) {
#if defined(__CUDA_ARCH__)
  // As __fsqrt_rn between its limits, without the test of them.
  float inverse;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  const float root = __fmul_rn(x, inverse);
  return __fmaf_rn(__fmaf_rn(-root, root, x), __fmul_rn(inverse, 0.5f), root);
#else
  return __builtin_sqrtf(x);
#endif
}

WARPCIPHER_INLINE double square_root(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

WARPCIPHER_INLINE double divide(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __ddiv_rn(a, b);
#else
  return a / b;
#endif
}

// The smaller of two that are not both zeros.
template <class Float>
WARPCIPHER_INLINE Float smaller(Float a, Float b) {
#if defined(__CUDA_ARCH__)
  return sizeof(Float) == 4 ? fminf(a, b) : fmin(a, b);
#else
  return a < b ? a : b;
#endif
}

// c[0] + c[1] x + ... Written without a loop: a compiler that makes vectors of loops wants none inside.
template <int I = 0, class Float, int N>
WARPCIPHER_INLINE Float polynomial(const Float (&c)[N], Float x) {
  if constexpr (I == N - 1) {
    return c[I];
  } else {
    return multiply_add(polynomial<I + 1>(c, x), x, c[I]);
  }
}

// An integer below 2^52 as a double, without a conversion: few processors have that for vectors.
WARPCIPHER_INLINE double to_double(std::uint64_t x) {
  return std::bit_cast<double>(x | 0x4330000000000000) - 4503599627370496.0;
}

// -2 ln(u) for 2^-126 <= u <= 1; exactly 0 for 1. Error: 2^-24 of the result if it is not small.
WARPCIPHER_INLINE float minus_two_log(float u) {
  constexpr float terms[10] = {-2.0f,        1.0f,         -0.666665434f, 0.499994576f,  -0.400146455f,
                               0.333660662f, -0.28108418f, 0.242969766f,  -0.275131732f, 0.261085063f};
  const auto bits = std::bit_cast<std::uint32_t>(u);
  const std::uint32_t exponent = (bits - 0x3f2aaaab) & 0xff800000;  // of u / m, 2/3 <= m < 4/3, times 2^23
  const float f = std::bit_cast<float>(bits - exponent) - 1.0f;
  return multiply_add(static_cast<float>(static_cast<std::int32_t>(exponent)), -1.38629436f * 0x1p-23f,
                      f * polynomial(terms, f));
}

// The same for 2^-1000 <= u <= 1. With s = f / (2 + f): ln(1 + f) = 2 s + s^3 R(s^2).
WARPCIPHER_INLINE double minus_two_log(double u) {
  constexpr double terms[9] = {2.0,
                               0.6666666666666666,
                               0.40000000000008057,
                               0.2857142856722996,
                               0.22222223055233897,
                               0.1818173713578915,
                               0.15388885750015446,
                               0.13209382740731304,
                               0.1361134978472909};
  const auto bits = std::bit_cast<std::uint64_t>(u);
  const std::uint64_t exponent = (bits - 0x3fe6a09e667f3bcd + 0x3ff0000000000000) >> 52;  // biased by 1023
  const double f = std::bit_cast<double>(bits - (exponent << 52) + 0x3ff0000000000000) - 1.0;
  const double s = divide(f, f + 2.0);
  const double t = s * s;
  const double e = to_double(exponent) - 1023.0;
  return multiply_add(e, -1.3862943611198906, (-2.0 * s) * polynomial(terms, t));
}

// sin(pi x) and cos(pi x) for -1/2 <= x <= 1/2.
WARPCIPHER_INLINE void sine_cosine(float x, float& sine, float& cosine) {
  constexpr float sine_terms[5] = {3.14159274f, -5.1677103f, 2.55007768f, -0.598292172f, 0.077659376f};
  constexpr float cosine_terms[6] = {1.0f, -4.93480206f, 4.05870914f, -1.33521211f, 0.234937564f, -0.0243967175f};
  const float t = x * x;
  sine = x * polynomial(sine_terms, t);
  cosine = polynomial(cosine_terms, t);
}

WARPCIPHER_INLINE void sine_cosine(double x, double& sine, double& cosine) {
  constexpr double sine_terms[9] = {3.141592653589793,     -5.167712780049969,      2.5501640398773007,
                                    -0.5992645293189472,   0.08214588657314388,     -0.007370430506268244,
                                    0.0004662998178566143, -2.1903501190232593e-05, 7.697868035009142e-07};
  constexpr double cosine_terms[10] = {1.0,
                                       -4.934802200544679,
                                       4.058712126416768,
                                       -1.335262768854555,
                                       0.23533063035799598,
                                       -0.025806891376604236,
                                       0.0019295741873581692,
                                       -0.00010463741712332374,
                                       4.300724827797759e-06,
                                       -1.3435271388325187e-07};
  const double t = x * x;
  sine = x * polynomial(sine_terms, t);
  cosine = polynomial(cosine_terms, t);
}

// float16 and bfloat16, as their bits: rounded to nearest, ties to even. No NaN.
WARPCIPHER_INLINE std::uint16_t to_half(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
  return half;
#else
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const std::uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
  return static_cast<std::uint16_t>((magnitude >= 0x47800000 ? 0x7c00 : finite) | (bits >> 16 & 0x8000));
#endif
}

WARPCIPHER_INLINE std::uint16_t to_bfloat(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace warpcipher::random
