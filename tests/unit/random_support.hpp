// SPDX-License-Identifier: Apache-2.0
// The distributions that every way to fill an array is compared on: each function, each width of word and value.
#pragma once

#include <cstdint>
#include <vector>

#include "random/distribution.hpp"

namespace warpcipher::random::test {

inline std::vector<Distribution> distributions() {
  std::vector<Distribution> list = {
      Distribution::of_bytes(Type::uint8),
      Distribution::of_integers(Type::int8, -128, 127),
      Distribution::of_integers(Type::uint8, 3, 199),
      Distribution::of_integers(Type::boolean, 0, 1),
      Distribution::of_integers(Type::int16, -32768, 32767),
      Distribution::of_integers(Type::uint16, 0, 65534),
      Distribution::of_integers(Type::int32, INT32_MIN, INT32_MAX),
      Distribution::of_integers(Type::uint32, 0, (1 << 20) - 2),
      Distribution::of_integers(Type::int32, -7, (1 << 20) - 7),
      Distribution::of_integers(Type::int64, INT64_MIN, INT64_MAX),
      Distribution::of_integers(Type::uint64, 1, UINT64_MAX),
      Distribution::of_integers(Type::int64, 0, (Wide{3} << 61) - 1),  // rejects one word in four
      Distribution::of_bernoulli(Type::boolean, 0.25),
      Distribution::of_bernoulli(Type::int16, 0),
      Distribution::of_bernoulli(Type::float32, 1),
      Distribution::of_bernoulli(Type::float64, 0.5),
  };
  for (const Type type : {Type::float16, Type::bfloat16, Type::float32, Type::float64}) {
    list.push_back(Distribution::of_uniform(type, 0, 1));
    list.push_back(Distribution::of_uniform(type, -3.5, 0.125));
    list.push_back(Distribution::of_normal(type, 0, 1));
    list.push_back(Distribution::of_normal(type, -2, 0.75));
    list.push_back(Distribution::of_exponential(type, 2));
    list.push_back(Distribution::of_laplace(type, -1, 3));
  }
  return list;
}

}  // namespace warpcipher::random::test
