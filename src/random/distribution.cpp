// SPDX-License-Identifier: Apache-2.0
#include "random/distribution.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"

namespace warpcipher::random {
namespace {

constexpr std::array<std::string_view, 7> kind_names = {"bytes",       "integers", "uniform",  "normal",
                                                        "exponential", "laplace",  "bernoulli"};
constexpr std::array<std::string_view, 13> type_names = {"bool",     "int8",    "int16",  "int32",  "int64",
                                                         "uint8",    "uint16",  "uint32", "uint64", "float16",
                                                         "bfloat16", "float32", "float64"};
constexpr std::array<std::size_t, 13> type_lens = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};

std::string text_of(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

std::string text_of(Wide x) {
  std::string text;
  if (x < 0) {
    text += '-';
    x = -x;
  }
  if (x >= 10) text += text_of(x / 10);
  text += static_cast<char>('0' + static_cast<int>(x % 10));
  return text;
}

bool is_float(Type type) { return type >= Type::float16; }

void want_floats(Kind kind, Type type) {
  if (!is_float(type)) {
    refuse("dtype is ", name_of(type), ": ", kind_names[static_cast<std::size_t>(kind)],
           " fills float16, bfloat16, float32 and float64");
  }
}

// In the type that the distribution is computed in.
double to_number(Type type, double x, const char* name) {
  const double number = type == Type::float64 ? x : static_cast<double>(static_cast<float>(x));
  if (!std::isfinite(number)) refuse(name, " is ", text_of(x), ": expected a finite number of the dtype");
  return number;
}

float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 0x3ff;
  const float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                          : exponent == 31 ? std::numeric_limits<float>::infinity()
                                           : std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

float from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// The bits of the next float below, of any format.
std::uint16_t next_below(std::uint16_t bits) {
  if ((bits & 0x7fff) == 0) return 0x8001;
  return static_cast<std::uint16_t>((bits & 0x8000) != 0 ? bits + 1 : bits - 1);
}

}  // namespace

namespace detail {

float rounded(Type type, double x) {
  const auto number = static_cast<float>(x);
  if (type == Type::float16) return from_half(to_half(number));
  if (type == Type::bfloat16) return from_bfloat(to_bfloat(number));
  return number;
}

double below(Type type, double x) {
  const auto number = static_cast<float>(x);
  if (type == Type::float16) return from_half(next_below(to_half(number)));
  if (type == Type::bfloat16) return from_bfloat(next_below(to_bfloat(number)));
  if (type == Type::float32) return std::nextafter(number, -std::numeric_limits<float>::infinity());
  return std::nextafter(x, -std::numeric_limits<double>::infinity());
}

Bernoulli<std::uint64_t> make_bernoulli(Type type, double probability) {
  std::uint64_t one = 1;
  if (type == Type::float16) one = to_half(1.0f);
  if (type == Type::bfloat16) one = to_bfloat(1.0f);
  if (type == Type::float32) one = std::bit_cast<std::uint32_t>(1.0f);
  if (type == Type::float64) one = std::bit_cast<std::uint64_t>(1.0);
  const double scaled = std::nearbyint(std::ldexp(probability, 64));
  if (scaled >= 0x1p64) return {1, 1, 0xffffffff, one};
  const auto threshold = static_cast<std::uint64_t>(scaled);
  return {static_cast<std::uint32_t>(threshold >> 32), static_cast<std::uint32_t>(threshold), 0, one};
}

}  // namespace detail

Kind find_kind(std::string_view name) { return static_cast<Kind>(find_name(kind_names, name, "distribution")); }

Type find_type(std::string_view name) { return static_cast<Type>(find_name(type_names, name, "dtype")); }

std::size_t item_len(Type type) { return type_lens[static_cast<std::size_t>(type)]; }

std::string_view name_of(Type type) { return type_names[static_cast<std::size_t>(type)]; }

Distribution Distribution::of_bytes(Type type) { return {.kind = Kind::bytes, .type = type}; }

Distribution Distribution::of_integers(Type type, Wide low, Wide last) {
  if (is_float(type)) refuse("dtype is ", name_of(type), ": integers fill integers and bool");
  const bool has_sign = type >= Type::int8 && type <= Type::int64;
  const auto bits = type == Type::boolean ? 1 : 8 * random::item_len(type);
  const Wide least = has_sign ? -(Wide{1} << (bits - 1)) : 0;
  const Wide most = least + (Wide{1} << bits) - 1;
  if (low > last || low < least || last > most) {
    refuse("the range is ", text_of(low), " to ", text_of(last), ": expected one that is not empty, within ",
           text_of(least), " to ", text_of(most), " of ", name_of(type));
  }
  return {.kind = Kind::integers,
          .type = type,
          .low = static_cast<std::uint64_t>(low),
          .span = static_cast<std::uint64_t>(last - low + 1)};
}

Distribution Distribution::of_uniform(Type type, double low, double high) {
  want_floats(Kind::uniform, type);
  const double from = type == Type::float64 ? low : static_cast<double>(detail::rounded(type, low));
  const double to = type == Type::float64 ? high : static_cast<double>(detail::rounded(type, high));
  to_number(type, from, "low");
  to_number(type, to, "high");
  if (!(from < to)) {
    refuse("low is ", text_of(low), " and high is ", text_of(high), ": expected low below high, as ", name_of(type));
  }
  to_number(type, to - from, "high - low");
  return {.kind = Kind::uniform, .type = type, .first = from, .second = to};
}

Distribution Distribution::of_normal(Type type, double mean, double deviation) {
  want_floats(Kind::normal, type);
  const double center = to_number(type, mean, "mean");
  const double width = to_number(type, deviation, "std");
  if (width < 0) refuse("std is ", text_of(deviation), ": expected 0 or more");
  return {.kind = Kind::normal, .type = type, .first = center, .second = width};
}

Distribution Distribution::of_exponential(Type type, double mean) {
  want_floats(Kind::exponential, type);
  const double number = to_number(type, mean, "scale");
  if (!(number > 0)) refuse("scale is ", text_of(mean), ": expected more than 0");
  return {.kind = Kind::exponential, .type = type, .first = number};
}

Distribution Distribution::of_laplace(Type type, double mean, double scale) {
  want_floats(Kind::laplace, type);
  const double center = to_number(type, mean, "mean");
  const double width = to_number(type, scale, "scale");
  if (!(width > 0)) refuse("scale is ", text_of(scale), ": expected more than 0");
  return {.kind = Kind::laplace, .type = type, .first = center, .second = width};
}

Distribution Distribution::of_bernoulli(Type type, double probability) {
  if (!(probability >= 0 && probability <= 1)) refuse("p is ", text_of(probability), ": expected 0 to 1");
  return {.kind = Kind::bernoulli, .type = type, .first = probability};
}

std::size_t Distribution::width() const {
  return visit(*this, [](const auto& function) { return sizeof(typename std::decay_t<decltype(function)>::Word); });
}

}  // namespace warpcipher::random
