// SPDX-License-Identifier: Apache-2.0
// GF(2^128): the carryless arithmetic against algorithm 1 of SP 800-38D and against doubling one bit at a time, the
// field's laws, and the values of the GCM specification's test case 2.

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "cipher/gf128.hpp"

namespace warpcipher::gf128 {
namespace {

// McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test case 2.
constexpr Element case2_h{0x66e94bd4ef8a2c3bu, 0x884cfa59ca342b2eu};
constexpr Element case2_c{0x0388dace60b6a392u, 0xf328c2b971b2fe78u};
constexpr Element case2_ch{0x5e2ec74691706288u, 0x2c85b0685353deb7u};
constexpr Element case2_hash{0xf38cbb1ad69223dcu, 0xc3457ae5b6b0f885u};
constexpr Element case2_lengths{0, 0x80};

static_assert(gcm_multiply(case2_c, case2_h) == case2_ch);
static_assert(reference::gcm_multiply(case2_c, case2_h) == case2_ch);
static_assert(gcm_multiply(add(case2_ch, case2_lengths), case2_h) == case2_hash);

// t * alpha, alpha = x: what jump_tweak() does n times.
constexpr Tweak double_tweak(Tweak t) {
  const std::uint64_t carry = t.high >> 63;
  return {t.low << 1 ^ carry * 0x87u, t.high << 1 | t.low >> 63};
}

static_assert(double_tweak({0, 0x8000000000000000u}) == Tweak{0x87, 0}, "IEEE 1619, section 5.2");
static_assert(jump_tweak({1, 0}, 128) == Tweak{0x87, 0});

// RFC 8452, appendix A: POLYVAL of two blocks, by GHASH's code.
constexpr std::uint8_t polyval_key[16] = {0x25, 0x62, 0x93, 0x47, 0x58, 0x92, 0x42, 0x76,
                                          0x1d, 0x31, 0xf8, 0x26, 0xba, 0x4b, 0x75, 0x7b};
constexpr std::uint8_t polyval_text[32] = {0x4f, 0x4f, 0x95, 0x66, 0x8c, 0x83, 0xdf, 0xb6, 0x40, 0x17, 0x62,
                                           0xbb, 0x2d, 0x01, 0xa2, 0x62, 0xd1, 0xa2, 0x4d, 0xdd, 0x27, 0x21,
                                           0xd0, 0x06, 0xbb, 0xe4, 0x5f, 0x20, 0xd3, 0xc9, 0xf3, 0x62};
constexpr std::uint8_t polyval_sum[16] = {0xf7, 0xa3, 0xb4, 0x7b, 0x84, 0x61, 0x19, 0xfa,
                                          0xe5, 0xb7, 0x86, 0x6c, 0xf5, 0xe5, 0xb7, 0x7e};
static_assert(polyval({0, 0}, load_polyval_key(polyval_key), polyval_text, 2) == load_reversed(polyval_sum));

class Gf128Test : public ::testing::Test {
 protected:
  Element random_element() { return {random_(), random_()}; }
  Tweak random_tweak() { return {random_(), random_()}; }

  std::mt19937_64 random_{20250101};
};

std::vector<Element> edge_elements() {
  std::vector<Element> edges{{0, 0}, gcm_one, {~std::uint64_t{0}, ~std::uint64_t{0}}};
  for (int i = 0; i < 64; ++i) {
    edges.push_back({std::uint64_t{1} << i, 0});
    edges.push_back({0, std::uint64_t{1} << i});
  }
  return edges;
}

TEST_F(Gf128Test, MultiplyEqualsAlgorithm1) {
  for (int i = 0; i < 2000; ++i) {
    const Element a = random_element();
    const Element b = random_element();
    EXPECT_EQ(gcm_multiply(a, b), reference::gcm_multiply(a, b));
  }
}

TEST_F(Gf128Test, MultiplyEqualsAlgorithm1ForEveryPairOfSingleBits) {
  for (const Element& a : edge_elements()) {
    for (const Element& b : edge_elements()) ASSERT_EQ(gcm_multiply(a, b), reference::gcm_multiply(a, b));
  }
}

TEST_F(Gf128Test, MultiplicationIsCommutativeAssociativeAndDistributive) {
  for (int i = 0; i < 200; ++i) {
    const Element a = random_element();
    const Element b = random_element();
    const Element c = random_element();
    EXPECT_EQ(gcm_multiply(a, b), gcm_multiply(b, a));
    EXPECT_EQ(gcm_multiply(gcm_multiply(a, b), c), gcm_multiply(a, gcm_multiply(b, c)));
    EXPECT_EQ(gcm_multiply(a, add(b, c)), add(gcm_multiply(a, b), gcm_multiply(a, c)));
    EXPECT_EQ(gcm_multiply(a, gcm_one), a);
  }
}

TEST_F(Gf128Test, SumOfProductsMayBeReducedOnce) {
  for (int i = 0; i < 200; ++i) {
    const Element a = random_element();
    const Element b = random_element();
    const Element c = random_element();
    const Element d = random_element();
    EXPECT_EQ(gcm_reduce(add(carryless_multiply(a, b), carryless_multiply(c, d))),
              add(gcm_multiply(a, b), gcm_multiply(c, d)));
  }
}

TEST_F(Gf128Test, SquareIsTheProductWithItself) {
  for (int i = 0; i < 200; ++i) {
    const Element a = random_element();
    EXPECT_EQ(gcm_square(a), gcm_multiply(a, a));
  }
  EXPECT_EQ(gcm_square(gcm_one), gcm_one);
}

TEST_F(Gf128Test, PowerEqualsRepeatedMultiplication) {
  const Element h = random_element();
  Element expected = gcm_one;
  for (std::uint64_t n = 0; n < 300; ++n) {
    ASSERT_EQ(gcm_power(h, n), expected) << "n = " << n;
    expected = reference::gcm_multiply(expected, h);
  }
}

TEST_F(Gf128Test, PowerOfTheGroupOrderIsOne) {
  // The multiplicative group has 2^128 - 1 = (2^64 - 1)(2^64 + 1) elements.
  const Element h = random_element();
  const Element part = gcm_power(h, ~std::uint64_t{0});
  const Element order = gcm_multiply(gcm_multiply(gcm_power(part, ~std::uint64_t{0}), part), part);
  EXPECT_EQ(order, gcm_one);
}

TEST_F(Gf128Test, GhashEqualsReferenceAtEveryCount) {
  std::vector<std::uint8_t> data(16 * 40);
  for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random_());
  const Element h = random_element();
  for (std::size_t blocks = 0; blocks <= 40; ++blocks) {
    const Element start = random_element();
    EXPECT_EQ(ghash(start, h, data.data(), blocks), reference::ghash(start, h, data.data(), blocks));
  }
}

TEST_F(Gf128Test, LoadAndStoreAreBigEndian) {
  std::array<std::uint8_t, 16> block{};
  for (std::size_t i = 0; i < 16; ++i) block[i] = static_cast<std::uint8_t>(i + 1);
  const Element a = load(block.data());
  EXPECT_EQ(a, (Element{0x0102030405060708u, 0x090a0b0c0d0e0f10u}));
  std::array<std::uint8_t, 16> stored{};
  store(stored.data(), a);
  EXPECT_EQ(stored, block);
  const Tweak t = load_tweak(block.data());
  EXPECT_EQ(t, (Tweak{0x0807060504030201u, 0x100f0e0d0c0b0a09u}));
  store_tweak(stored.data(), t);
  EXPECT_EQ(stored, block);
}

TEST_F(Gf128Test, JumpEqualsRepeatedDoubling) {
  const Tweak start = random_tweak();
  Tweak expected = start;
  for (std::uint64_t n = 0; n <= 20000; ++n) {
    ASSERT_EQ(jump_tweak(start, n), expected) << "n = " << n;
    expected = double_tweak(expected);
  }
}

TEST_F(Gf128Test, JumpEqualsRepeatedDoublingFarOut) {
  const Tweak start = random_tweak();
  Tweak expected = start;
  std::uint64_t reached = 0;
  for (const std::uint64_t n : {524287u, 524288u, 700001u, 1048575u, 1048576u}) {
    for (; reached < n; ++reached) expected = double_tweak(expected);
    EXPECT_EQ(jump_tweak(start, n), expected) << "n = " << n;
  }
}

TEST_F(Gf128Test, JumpsAdd) {
  for (int i = 0; i < 100; ++i) {
    const Tweak start = random_tweak();
    const std::uint64_t n = random_() >> 1;
    const std::uint64_t m = random_() >> (1 + i % 63);
    EXPECT_EQ(jump_tweak(jump_tweak(start, n), m), jump_tweak(start, n + m));
  }
}

}  // namespace
}  // namespace warpcipher::gf128
