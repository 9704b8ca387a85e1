// SPDX-License-Identifier: Apache-2.0
// The distributions as functions of the stream's words, for host and device. docs/design/random.md states grids and
// intervals.
//
// A distribution turns `group` words, little-endian in the stream, into as many values, without a branch; it returns
// whether it rejects the word. Then finish() makes the value, of the words that follow.
#pragma once

#include <cstdint>

#include "random/elementary.hpp"

namespace warpcipher::random {

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
