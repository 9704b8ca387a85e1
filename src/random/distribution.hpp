// SPDX-License-Identifier: Apache-2.0
// A distribution as a caller names it: checked, and made into the function of distributions.hpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "random/distributions.hpp"

namespace warpcipher::random {

enum class Kind : std::uint8_t { bytes, integers, uniform, normal, exponential, laplace, bernoulli };
enum class Type : std::uint8_t {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64
};

// Throws Error{invalid_argument} that names the given and all possible values.
Kind find_kind(std::string_view name);
Type find_type(std::string_view name);

std::size_t item_len(Type type);
std::string_view name_of(Type type);

// Ranges of up to this many values take 32-bit words, others 64-bit ones. At most one word in 2^12 is rejected, unless
// a range has more than 2^52 values.
inline constexpr std::uint64_t most_of_short_range = std::uint64_t{1} << 20;

__extension__ using Wide = __int128;

// Valid by construction: the functions below throw Error{invalid_argument}.
struct Distribution {
  Kind kind;
  Type type;
  std::uint64_t low = 0;   // integers: the least, modulo 2^64
  std::uint64_t span = 0;  // their number; 0 is 2^64
  double first = 0;        // low, mean, mean, or probability
  double second = 0;       // high, deviation, scale

  // Of a type of integers, or boolean; low..last lie in its range. `bytes` is of any type.
  static Distribution of_bytes(Type type);
  static Distribution of_integers(Type type, Wide low, Wide last);
  // Of a type of floats. The parameters are rounded to the type first (normal, exponential and Laplace: to float32, or
  // to float64 where that is the type).
  static Distribution of_uniform(Type type, double low, double high);
  static Distribution of_normal(Type type, double mean, double deviation);
  static Distribution of_exponential(Type type, double mean);
  static Distribution of_laplace(Type type, double mean, double scale);
  // Of any type.
  static Distribution of_bernoulli(Type type, double probability);

  // Stream bytes of an element, and bytes of the element itself. Elements of `bytes` are bytes.
  std::size_t width() const;
  std::size_t item_len() const { return kind == Kind::bytes ? 1 : random::item_len(type); }
};

namespace detail {

// The value of a type that a number is rounded to, and the largest value below one of them.
float rounded(Type type, double x);
double below(Type type, double x);
Bernoulli<std::uint64_t> make_bernoulli(Type type, double probability);

template <class T, class Visitor>
decltype(auto) visit_integers(const Distribution& d, const Visitor& visitor) {
  const auto low = static_cast<T>(d.low);
  if (d.span == (sizeof(T) == 8 ? 0 : std::uint64_t{1} << 8 * sizeof(T) % 64)) return visitor(Full<T>{low});
  if constexpr (sizeof(T) >= 4) {
    if (d.span > most_of_short_range) return visitor(Range<std::uint64_t, T>{d.span, (0 - d.span) % d.span, low});
  }
  const auto span = static_cast<std::uint32_t>(d.span);
  return visitor(Range<std::uint32_t, T>{span, (0 - span) % span, low});
}

template <class F, class Visitor>
decltype(auto) visit_floats(const Distribution& d, const Visitor& visitor) {
  using Number = typename F::Number;
  const auto first = static_cast<Number>(d.first), second = static_cast<Number>(d.second);
  if (d.kind == Kind::uniform) {
    return visitor(Uniform<F>{first, second - first, static_cast<Number>(below(d.type, d.second))});
  }
  if (d.kind == Kind::normal) return visitor(Normal<F>{first, second});
  if (d.kind == Kind::laplace) return visitor(Laplace<F>{first, second * static_cast<Number>(0.5)});
  return visitor(Exponential<F>{first * static_cast<Number>(0.5)});
}

template <class T, class Visitor>
decltype(auto) visit_bernoulli(const Distribution& d, const Visitor& visitor) {
  const Bernoulli<std::uint64_t> made = make_bernoulli(d.type, d.first);
  return visitor(Bernoulli<T>{made.upper, made.lower, made.always, static_cast<T>(made.one)});
}

}  // namespace detail

// Calls visitor(function of distributions.hpp).
template <class Visitor>
decltype(auto) visit(const Distribution& d, const Visitor& visitor) {
  using namespace detail;
  const std::size_t len = random::item_len(d.type);
  switch (d.kind) {
    case Kind::bytes: return visitor(Full<std::uint8_t>{0});
    case Kind::integers:
      if (len == 1) return visit_integers<std::uint8_t>(d, visitor);
      if (len == 2) return visit_integers<std::uint16_t>(d, visitor);
      if (len == 4) return visit_integers<std::uint32_t>(d, visitor);
      return visit_integers<std::uint64_t>(d, visitor);
    case Kind::bernoulli:
      if (len == 1) return visit_bernoulli<std::uint8_t>(d, visitor);
      if (len == 2) return visit_bernoulli<std::uint16_t>(d, visitor);
      if (len == 4) return visit_bernoulli<std::uint32_t>(d, visitor);
      return visit_bernoulli<std::uint64_t>(d, visitor);
    default:
      if (d.type == Type::float16) return visit_floats<Float16>(d, visitor);
      if (d.type == Type::bfloat16) return visit_floats<Bfloat16>(d, visitor);
      if (d.type == Type::float32) return visit_floats<Float32>(d, visitor);
      return visit_floats<Float64>(d, visitor);
  }
}

}  // namespace warpcipher::random
