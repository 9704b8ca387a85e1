// SPDX-License-Identifier: Apache-2.0
// Sums of carry-less products of GHASH, in vectors of one block or several: a part of gcm_code.hpp, which says what
// form blocks and powers have. All of it is in an unnamed namespace, for the reason that cipher/simd/128.hpp gives.
#pragma once

#include "cipher/simd/128.hpp"
#include "engine/cpu/lanes.hpp"

namespace warpcipher::cpu {
namespace {

inline __m128i swap_halves(__m128i a) { return _mm_shuffle_epi32(a, 0x4e); }
inline __m128i add(__m128i a, __m128i b) { return _mm_xor_si128(a, b); }

// x^128 + x^7 + x^2 + x + 1 with its bits reversed, without x^0.
inline __m128i polynomial() { return _mm_set_epi64x(static_cast<long long>(0xc200000000000000u), 1); }

// The 256-bit sum high:low with `middle` across them, reduced.
inline __m128i reduce(__m128i low, __m128i middle, __m128i high) {
  middle = add(middle, add(swap_halves(low), _mm_clmulepi64_si128(polynomial(), low, 0x01)));
  return add(high, add(swap_halves(middle), _mm_clmulepi64_si128(polynomial(), middle, 0x01)));
}

template <class Simd>
concept adds_three = requires(typename Simd::Vector v) { Simd::add_three(v, v, v); };

// Sums of products that wait for their reduction: Karatsuba's three, or, where one instruction adds three vectors,
// the four of which two are added at once.
template <class Simd>
struct GhashSum {
  using Vector = typename Simd::Vector;

  Vector low, middle, high, taken_low, taken_high;

  static GhashSum of_nothing() {
    const Vector zero = Simd::first_block(_mm_setzero_si128());
    return {zero, zero, zero, zero, zero};
  }

  // The block x H^n times, whose power lies at `place`, and the blocks after it, H^(n-1) times and so on; ByLane: all
  // of them H^n times.
  template <bool ByLane>
  void add_product(Vector x, const GcmLaneKey& key, std::size_t place) {
    const Vector factor = load_factor<ByLane>(key.powers[place]);
    low = Simd::exclusive_or(low, Simd::template multiply<0x00>(x, factor));
    high = Simd::exclusive_or(high, Simd::template multiply<0x11>(x, factor));
    if constexpr (adds_three<Simd>) {
      add_middle(x, factor);
    } else {
      middle = Simd::exclusive_or(middle, Simd::template multiply<0x00>(Simd::exclusive_or(x, Simd::swap_halves(x)),
                                                                        load_factor<ByLane>(key.sums[place])));
    }
  }

  // Two of them, one after the other.
  template <bool ByLane>
  void take_product(Vector x, const GcmLaneKey& key, std::size_t place)
    requires adds_three<Simd>
  {
    const Vector factor = load_factor<ByLane>(key.powers[place]);
    taken_low = Simd::template multiply<0x00>(x, factor);
    taken_high = Simd::template multiply<0x11>(x, factor);
    add_middle(x, factor);
  }

  template <bool ByLane>
  void add_taken(Vector x, const GcmLaneKey& key, std::size_t place)
    requires adds_three<Simd>
  {
    const Vector factor = load_factor<ByLane>(key.powers[place]);
    low = Simd::add_three(low, taken_low, Simd::template multiply<0x00>(x, factor));
    high = Simd::add_three(high, taken_high, Simd::template multiply<0x11>(x, factor));
    add_middle(x, factor);
  }

  template <bool ByLane>
  static Vector load_factor(const std::uint8_t* power) {
    if constexpr (ByLane) return Simd::from_block(_mm_loadu_si128(reinterpret_cast<const __m128i*>(power)));
    return Simd::load(power);
  }

  void add_middle(Vector x, Vector factor)
    requires adds_three<Simd>
  {
    middle =
        Simd::add_three(middle, Simd::template multiply<0x01>(x, factor), Simd::template multiply<0x10>(x, factor));
  }

  __m128i reduced() const {
    const __m128i a = Simd::sum_of_blocks(low), b = Simd::sum_of_blocks(middle), c = Simd::sum_of_blocks(high);
    return reduce(a, adds_three<Simd> ? b : add(b, add(a, c)), c);
  }

  // The sum of each lane: see run_by_lane().
  Vector reduced_by_lane() const {
    const Vector polynomials = Simd::from_block(polynomial());
    const auto fold = [&](Vector sum, Vector folded) {
      const Vector swapped = Simd::swap_halves(folded);
      const Vector product = Simd::template multiply<0x01>(polynomials, folded);
      if constexpr (adds_three<Simd>) return Simd::add_three(sum, swapped, product);
      return Simd::exclusive_or(sum, Simd::exclusive_or(swapped, product));
    };
    Vector across = middle;
    if constexpr (!adds_three<Simd>) across = Simd::exclusive_or(middle, Simd::exclusive_or(low, high));
    return fold(high, fold(across, low));
  }
};

}  // namespace
}  // namespace warpcipher::cpu
