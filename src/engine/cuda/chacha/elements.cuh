// SPDX-License-Identifier: Apache-2.0
// Numbers modulo 2^130 - 5 in lanes (cipher/poly1305.hpp).
#pragma once

#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/block.cuh"

namespace warpcipher::cuda::chacha {

using poly1305::Element;
using poly1305::limb_mask;
using poly1305::multiply;
using poly1305::Product;

__device__ __forceinline__ Element one() { return {{1, 0, 0, 0, 0}}; }
__device__ __forceinline__ Element two_to_64() { return {{0, 0, 1u << 12, 0, 0}}; }
__device__ __forceinline__ Element two_to_128() { return {{0, 0, 0, 0, 1u << 24}}; }

__device__ __forceinline__ Element to_element(const Block& b, std::uint32_t high) {
  return {{b.words[0] & limb_mask, (b.words[0] >> 26 | b.words[1] << 6) & limb_mask,
           (b.words[1] >> 20 | b.words[2] << 12) & limb_mask, (b.words[2] >> 14 | b.words[3] << 18) & limb_mask,
           b.words[3] >> 8 | high << 24}};
}

// r of the first half of a one-time key: 22 of its bits are cleared.
__device__ __forceinline__ Element to_r(const Block& b) {
  return to_element(
      {{b.words[0] & 0x0fffffff, b.words[1] & 0x0ffffffc, b.words[2] & 0x0ffffffc, b.words[3] & 0x0ffffffc}}, 0);
}

__device__ __forceinline__ Element load_factor(const Factors& factors, std::uint32_t message, std::uint32_t power) {
  Element element;
#pragma unroll
  for (std::uint32_t i = 0; i < 5; ++i) element.limbs[i] = __ldg(factors.limb(message, power, i));
  return element;
}

// a b + x
__device__ __forceinline__ Element multiply_add(const Element& a, const Element& b, const Element& x) {
  Product product = poly1305::multiply_wide(a, b);
#pragma unroll
  for (int i = 0; i < 5; ++i) product.limbs[i] += x.limbs[i];
  return poly1305::reduce(product);
}

__device__ __forceinline__ Element multiply_add(const Element& a, const Element& b, const Element& c,
                                                const Element& d) {
  Product product = poly1305::multiply_wide(a, b);
  const Product other = poly1305::multiply_wide(c, d);
#pragma unroll
  for (int i = 0; i < 5; ++i) product.limbs[i] += other.limbs[i];
  return poly1305::reduce(product);
}

__device__ __forceinline__ Element choose(bool first, const Element& a, const Element& b) {
  Element chosen;
#pragma unroll
  for (int i = 0; i < 5; ++i) chosen.limbs[i] = first ? a.limbs[i] : b.limbs[i];
  return chosen;
}

// The sum over 2^log neighbouring lanes, in each of them. Every lane takes part.
__device__ __forceinline__ Element sum_of_lanes(Element x, std::uint32_t log) {
  for (std::uint32_t distance = 1; distance < 1u << log; distance *= 2) {
#pragma unroll
    for (int i = 0; i < 5; ++i) x.limbs[i] += from_lane_xor(x.limbs[i], distance);
  }
  Product product;  // limbs have grown to 31 bits
#pragma unroll
  for (int i = 0; i < 5; ++i) product.limbs[i] = x.limbs[i];
  return poly1305::reduce(product);
}

// base^exponent; the exponent is not secret.
__device__ __forceinline__ Element power(const Element& base, std::uint64_t exponent) {
  Element result = one();
  for (int bit = 63 - __clzll(static_cast<long long>(exponent)); bit >= 0; --bit) {
    result = multiply(result, result);
    if ((exponent >> bit & 1) != 0) result = multiply(result, base);
  }
  return result;
}

// The powers by which 2^log neighbouring lanes share a sum.
struct LanePowers {
  Element step;  // r^(2^log)
  Element own;   // r^(2^log - lane)
};

__device__ __forceinline__ LanePowers make_lane_powers(const Element& r, std::uint32_t lane, std::uint32_t log) {
  const std::uint32_t exponent = (1u << log) - lane;
  LanePowers powers{r, one()};
  for (std::uint32_t j = 0; j < log; ++j) {
    powers.own = choose((exponent >> j & 1) != 0, multiply(powers.own, powers.step), powers.own);
    powers.step = multiply(powers.step, powers.step);
  }
  powers.own = choose(lane == 0, powers.step, powers.own);
  return powers;
}

// The sum of x_i r^(n-i) for i below n, by 2^log neighbouring lanes, in each of them: each takes every 2^log-th term.
// load(i) gives x_i. Every lane takes part.
template <class Load>
__device__ __forceinline__ Element sum_by_lanes(std::uint64_t n, std::uint32_t lane, std::uint32_t log,
                                                const LanePowers& powers, Load&& load) {
  const std::uint64_t rows = (n + (std::uint64_t{1} << log) - 1) >> log;
  const std::uint64_t missing = (rows << log) - n;  // the first row is short at its front
  Element sum{};
  if (rows != 0 && lane >= missing) sum = load(lane - missing);
#pragma unroll 1
  for (std::uint64_t row = 1; row < rows; ++row) {
    sum = multiply_add(sum, powers.step, load((row << log) + lane - missing));
  }
  return sum_of_lanes(multiply(sum, powers.own), log);
}

}  // namespace warpcipher::cuda::chacha
