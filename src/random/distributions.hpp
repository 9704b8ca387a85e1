// SPDX-License-Identifier: Apache-2.0
// The distributions as functions of the stream's words, for host and device. docs/design/random.md states grids and
// intervals.
//
// A distribution turns `group` words, little-endian in the stream, into as many values, without a branch; it returns
// whether it rejects the word. Then finish() makes the value, of the words that follow.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/host_device.hpp"

namespace warpcipher::random {

// The functions of floating point that the distributions need, the same bit for bit on every processor: of IEEE 754's
// only such operations, each rounded to nearest. Multiply-add is always explicit, and no product goes into a plain sum,
// so that no compiler can join the two.
//
// The polynomials are minimax (Remez), of this project's own making: docs/design/random.md has their errors.
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

// A float of a kind: how it is stored, and in which type it is computed.
struct Float16 {
  using Bits = std::uint16_t;
  using Number = float;
  static WARPCIPHER_INLINE Bits store(Number x) { return to_half(x); }
};
struct Bfloat16 {
  using Bits = std::uint16_t;
  using Number = float;
  static WARPCIPHER_INLINE Bits store(Number x) { return to_bfloat(x); }
};
struct Float32 {
  using Bits = std::uint32_t;
  using Number = float;
  static WARPCIPHER_INLINE Bits store(Number x) { return std::bit_cast<Bits>(x); }
};
struct Float64 {
  using Bits = std::uint64_t;
  using Number = double;
  static WARPCIPHER_INLINE Bits store(Number x) { return std::bit_cast<Bits>(x); }
};

// The word of the stream for a float of 32 bits or fewer, or of 64, where its grid is not coarser.
template <class Number>
using WordOf = std::conditional_t<sizeof(Number) == 8, std::uint64_t, std::uint32_t>;

// Integers of the whole range, and bytes: the stream itself, and `low` added, which is 0 or the highest bit.
template <class T>
struct Full {
  using Word = T;
  using Value = T;
  static constexpr int group = 1;

  T low;

  WARPCIPHER_INLINE bool operator()(const Word (&words)[1], Value (&values)[1]) const {
    values[0] = static_cast<T>(words[0] ^ low);
    return false;
  }
};

// low + floor(w span / 2^bits of Word), without bias: Lemire, "Fast random integer generation in an interval", 2019.
template <class W, class T>
struct Range {
  using Word = W;
  using Value = T;
  static constexpr int group = 1;

  W span;       // 2 or more values (or 1)
  W threshold;  // 2^bits mod span
  T low;

  WARPCIPHER_INLINE bool operator()(const Word (&words)[1], Value (&values)[1]) const {
    values[0] = static_cast<T>(product_high(words[0]) + low);
    return static_cast<W>(words[0] * span) < threshold;
  }

  template <class Further>
  WARPCIPHER_HD void finish(const Word (&)[1], Value (&values)[1], const Further& further) const {
    for (std::uint32_t i = 0; i < Further::template count<W>(); ++i) {
      const W word[1] = {further.template get<W>(i)};
      if (!(*this)(word, values)) return;
    }
  }

  WARPCIPHER_INLINE W product_high(W word) const {
    if constexpr (sizeof(W) < 8) {
      return static_cast<W>(std::uint64_t{word} * span >> 8 * sizeof(W));
    } else {
#if defined(__CUDA_ARCH__)
      return __umul64hi(word, span);
#else
      __extension__ using Wide = unsigned __int128;
      return static_cast<W>(Wide{word} * span >> 64);
#endif
    }
  }
};

// u, on the grid of the type below 1, from low to below high.
template <class F>
struct Uniform {
  using Number = typename F::Number;
  using Word = typename F::Bits;
  using Value = typename F::Bits;
  static constexpr int group = 1;

  Number low, width, most;  // most: the largest value of the type below high

  WARPCIPHER_INLINE bool operator()(const Word (&words)[1], Value (&values)[1]) const {
    const Number x = multiply_add(unit(words[0]), width, low);
    values[0] = F::store(smaller(x, most));
    return false;
  }

  static WARPCIPHER_INLINE Number unit(Word word) {
    if constexpr (std::is_same_v<F, Float64>) {
      // 53 bits: the upper 52 are even, and the last is added exactly.
      return multiply_add(to_double(word >> 12), 0x1p-52, static_cast<double>(word >> 11 & 1) * 0x1p-53);
    } else if constexpr (std::is_same_v<F, Float32>) {
      return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
    } else if constexpr (std::is_same_v<F, Float16>) {
      return static_cast<float>(static_cast<std::int32_t>(word >> 5)) * 0x1p-11f;
    } else {
      return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-8f;
    }
  }
};

// Above 0, and below 1: w (1 - 2^-24) + 1/2 in units of 2^-32, rounded to a float; or an odd number of 2^-53.
WARPCIPHER_INLINE float above_zero(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  const auto number = static_cast<float>(word);
#else
  // The same, rounded once: vectors have no conversion of unsigned integers.
  const auto number = multiply_add(static_cast<float>(static_cast<std::int32_t>(word >> 16)), 0x1p16f,
                                   static_cast<float>(static_cast<std::int32_t>(word & 0xffff)));
#endif
  return multiply_add(number, 0x1.fffffep-33f, 0x1p-33f);
}
WARPCIPHER_INLINE double above_zero(std::uint64_t word) { return multiply_add(to_double(word >> 12), 0x1p-52, 0x1p-53); }

// Box and Muller, "A note on the generation of random normal deviates", 1958: a radius and an angle. The angle is half
// a turn, -1/2 <= x <= 1/2, and a sign of the radius, for which the word's last bit stands: every second angle of the
// grid is on the other side.
template <class F>
struct Normal {
  using Number = typename F::Number;
  using Word = WordOf<Number>;
  using Value = typename F::Bits;
  static constexpr int group = 2;

  Number mean, deviation;

  WARPCIPHER_INLINE bool operator()(const Word (&words)[2], Value (&values)[2]) const {
    constexpr int last_bit = 8 * sizeof(Word) - 1;
    const Number positive = square_root(minus_two_log(above_zero(words[0])));
    const auto radius = std::bit_cast<Number>(std::bit_cast<Word>(positive) ^ words[1] << last_bit);
    Number sine, cosine;
    sine_cosine(half_turns(words[1]), sine, cosine);
    values[0] = F::store(multiply_add(radius * cosine, deviation, mean));
    values[1] = F::store(multiply_add(radius * sine, deviation, mean));
    return false;
  }

  static WARPCIPHER_INLINE float half_turns(std::uint32_t word) {
    return static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-32f;
  }
  static WARPCIPHER_INLINE double half_turns(std::uint64_t word) { return multiply_add(to_double(word >> 12), 0x1p-52, -0.5); }
};

// -ln(u) times the mean.
template <class F>
struct Exponential {
  using Number = typename F::Number;
  using Word = WordOf<Number>;
  using Value = typename F::Bits;
  static constexpr int group = 1;

  Number half_mean;

  WARPCIPHER_INLINE bool operator()(const Word (&words)[1], Value (&values)[1]) const {
    values[0] = F::store(minus_two_log(above_zero(words[0])) * half_mean);
    return false;
  }
};

// An exponential number, and the word's last bit as its sign. The bits above that make u; as float32: all 31 of them.
template <class F>
struct Laplace {
  using Number = typename F::Number;
  using Word = WordOf<Number>;
  using Value = typename F::Bits;
  static constexpr int group = 1;

  Number mean, half_scale;

  WARPCIPHER_INLINE bool operator()(const Word (&words)[1], Value (&values)[1]) const {
    constexpr int last_bit = 8 * sizeof(Word) - 1;
    const Number positive = minus_two_log(unit(words[0]));
    const auto made = std::bit_cast<Number>(std::bit_cast<Word>(positive) ^ words[0] << last_bit);
    values[0] = F::store(multiply_add(made, half_scale, mean));
    return false;
  }

  static WARPCIPHER_INLINE float unit(std::uint32_t word) {
    return multiply_add(static_cast<float>(static_cast<std::int32_t>(word >> 1)), 0x1.fffffep-32f, 0x1p-32f);
  }
  static WARPCIPHER_INLINE double unit(std::uint64_t word) { return above_zero(word); }
};

// `one` with probability threshold / 2^64, else 0. The upper half of the threshold, up to 2^32, decides but once in
// 2^32 elements.
template <class T>
struct Bernoulli {
  using Word = std::uint32_t;
  using Value = T;
  static constexpr int group = 1;

  std::uint32_t upper;
  std::uint32_t lower;
  std::uint32_t always;  // all bits where the threshold is 2^64, else 0
  T one;

  WARPCIPHER_INLINE bool operator()(const Word (&words)[1], Value (&values)[1]) const {
    values[0] = (words[0] & ~always) < upper ? one : T{};
    return words[0] == upper;
  }

  template <class Further>
  WARPCIPHER_HD void finish(const Word (&)[1], Value (&values)[1], const Further& further) const {
    values[0] = (further.template get<std::uint32_t>(0) & ~always) < lower ? one : T{};
  }
};

// Distributions that reject words.
template <class F>
inline constexpr bool has_rejections = false;
template <class W, class T>
inline constexpr bool has_rejections<Range<W, T>> = true;
template <class T>
inline constexpr bool has_rejections<Bernoulli<T>> = true;

}  // namespace warpcipher::random
