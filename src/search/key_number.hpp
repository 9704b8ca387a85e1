// SPDX-License-Identifier: Apache-2.0
// The number of a key in a search: an unsigned integer of 320 bits, wide enough for 2^256, the count of all AES-256
// keys. Arithmetic wraps modulo 2^320, which nothing here reaches.
#pragma once

#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace warpcipher::search {

class KeyNumber {
 public:
  static constexpr std::size_t limbs = 5;
  static constexpr std::size_t bits = 64 * limbs;

  constexpr KeyNumber() = default;
  constexpr KeyNumber(std::uint64_t value) : limbs_{value} {}  // NOLINT(google-explicit-constructor): counts mix freely

  // Limb 0 is the least significant.
  constexpr std::uint64_t limb(std::size_t index) const { return limbs_[index]; }
  constexpr void set_limb(std::size_t index, std::uint64_t value) { limbs_[index] = value; }
  constexpr std::uint64_t low64() const { return limbs_[0]; }

  constexpr bool bit(std::size_t index) const { return (limbs_[index / 64] >> index % 64 & 1u) != 0; }
  constexpr void set_bit(std::size_t index) { limbs_[index / 64] |= std::uint64_t{1} << index % 64; }

  constexpr KeyNumber& operator+=(const KeyNumber& other) {
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < limbs; ++i) {
      const std::uint64_t sum = limbs_[i] + other.limbs_[i];
      const std::uint64_t total = sum + carry;
      carry = static_cast<std::uint64_t>(sum < limbs_[i]) | static_cast<std::uint64_t>(total < sum);
      limbs_[i] = total;
    }
    return *this;
  }

  constexpr KeyNumber& operator-=(const KeyNumber& other) {
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs; ++i) {
      const std::uint64_t difference = limbs_[i] - other.limbs_[i];
      const std::uint64_t total = difference - borrow;
      borrow =
          static_cast<std::uint64_t>(limbs_[i] < other.limbs_[i]) | static_cast<std::uint64_t>(difference < borrow);
      limbs_[i] = total;
    }
    return *this;
  }

  // Shifts by 0 to bits - 1.
  constexpr KeyNumber operator<<(std::size_t count) const {
    KeyNumber result;
    const std::size_t whole = count / 64;
    const std::size_t part = count % 64;
    for (std::size_t i = limbs; i-- > whole;) {
      result.limbs_[i] = limbs_[i - whole] << part;
      if (part != 0 && i > whole) result.limbs_[i] |= limbs_[i - whole - 1] >> (64 - part);
    }
    return result;
  }

  constexpr KeyNumber operator>>(std::size_t count) const {
    KeyNumber result;
    const std::size_t whole = count / 64;
    const std::size_t part = count % 64;
    for (std::size_t i = 0; i + whole < limbs; ++i) {
      result.limbs_[i] = limbs_[i + whole] >> part;
      if (part != 0 && i + whole + 1 < limbs) result.limbs_[i] |= limbs_[i + whole + 1] << (64 - part);
    }
    return result;
  }

  friend constexpr KeyNumber operator+(KeyNumber a, const KeyNumber& b) { return a += b; }
  friend constexpr KeyNumber operator-(KeyNumber a, const KeyNumber& b) { return a -= b; }
  friend constexpr bool operator==(const KeyNumber& a, const KeyNumber& b) = default;
  friend constexpr std::strong_ordering operator<=>(const KeyNumber& a, const KeyNumber& b) {
    for (std::size_t i = limbs; i-- > 0;) {
      if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] <=> b.limbs_[i];
    }
    return std::strong_ordering::equal;
  }

  // The nearest double, for logarithms and rates.
  double to_double() const {
    double value = 0;
    for (std::size_t i = limbs; i-- > 0;) value = std::ldexp(value, 64) + static_cast<double>(limbs_[i]);
    return value;
  }

 private:
  std::array<std::uint64_t, limbs> limbs_{};
};

}  // namespace warpcipher::search
