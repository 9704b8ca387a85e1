// SPDX-License-Identifier: Apache-2.0
// The S-box circuits, proven at compile time for every input, and the three-input functions they are made of.

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <utility>

#include "cipher/aes_tables.hpp"
#include "cipher/circuits.hpp"
#include "cipher/des.hpp"

namespace warpcipher {
namespace {

// Bit x of word k of plane i is bit i of the number 64 k + x: all inputs of a circuit side by side.
constexpr std::uint64_t input_plane(unsigned plane, unsigned word) {
  std::uint64_t bits = 0;
  for (unsigned x = 0; x < 64; ++x) bits |= static_cast<std::uint64_t>((64 * word + x) >> plane & 1u) << x;
  return bits;
}

template <bool Inverse>
constexpr bool aes_circuit_is_the_sbox() {
  for (unsigned word = 0; word < 4; ++word) {
    std::uint64_t bits[8] = {};
    for (unsigned i = 0; i < 8; ++i) bits[i] = input_plane(i, word);
    if constexpr (Inverse) {
      circuits::aes_inverse_sbox(bits);
    } else {
      circuits::aes_sbox(bits);
    }
    for (unsigned x = 0; x < 64; ++x) {
      unsigned value = 0;
      for (unsigned i = 0; i < 8; ++i) value |= static_cast<unsigned>(bits[i] >> x & 1u) << i;
      if (value != (Inverse ? aes::inverse_sbox : aes::sbox)[64 * word + x]) return false;
    }
  }
  return true;
}

template <int Box>
constexpr bool des_circuit_is_the_sbox() {
  std::uint64_t in[6] = {};
  for (unsigned i = 0; i < 6; ++i) in[i] = input_plane(5 - i, 0);
  std::uint64_t out[4] = {};
  circuits::run<circuits::DesSbox<Box>>(in, out);
  for (unsigned x = 0; x < 64; ++x) {
    unsigned value = 0;
    for (unsigned i = 0; i < 4; ++i) value = value << 1 | static_cast<unsigned>(out[i] >> x & 1u);
    const unsigned row = (x >> 4 & 2u) | (x & 1u);
    if (value != des::sboxes[Box - 1][row][x >> 1 & 15u]) return false;
  }
  return true;
}

static_assert(aes_circuit_is_the_sbox<false>(), "the circuit differs from the S-box of FIPS 197");
static_assert(aes_circuit_is_the_sbox<true>(), "the circuit differs from the inverse S-box of FIPS 197");
static_assert(des_circuit_is_the_sbox<1>(), "the circuit differs from S1 of FIPS 46-3");
static_assert(des_circuit_is_the_sbox<2>(), "the circuit differs from S2 of FIPS 46-3");
static_assert(des_circuit_is_the_sbox<3>(), "the circuit differs from S3 of FIPS 46-3");
static_assert(des_circuit_is_the_sbox<4>(), "the circuit differs from S4 of FIPS 46-3");
static_assert(des_circuit_is_the_sbox<5>(), "the circuit differs from S5 of FIPS 46-3");
static_assert(des_circuit_is_the_sbox<6>(), "the circuit differs from S6 of FIPS 46-3");
static_assert(des_circuit_is_the_sbox<7>(), "the circuit differs from S7 of FIPS 46-3");
static_assert(des_circuit_is_the_sbox<8>(), "the circuit differs from S8 of FIPS 46-3");

template <class Word>
Word look_up(unsigned table, Word a, Word b, Word c) {
  Word result = 0;
  for (unsigned i = 0; i < 8 * sizeof(Word); ++i) {
    const auto index = static_cast<unsigned>((a >> i & 1u) << 2 | (b >> i & 1u) << 1 | (c >> i & 1u));
    result |= static_cast<Word>(table >> index & 1u) << i;
  }
  return result;
}

template <class Word, unsigned... Tables>
constexpr auto functions_of(std::integer_sequence<unsigned, Tables...>) {
  return std::array<Word (*)(Word, Word, Word), sizeof...(Tables)>{
      [](Word a, Word b, Word c) { return lut3<Tables>(a, b, c); }...};
}

TEST(Lut3Test, EveryTableIsWhatItSays) {
  using Vector [[gnu::vector_size(16)]] = std::uint64_t;
  constexpr std::make_integer_sequence<unsigned, 256> tables;
  constexpr auto of_64_bits = functions_of<std::uint64_t>(tables);
  constexpr auto of_32_bits = functions_of<std::uint32_t>(tables);
  constexpr auto of_vectors = functions_of<Vector>(tables);
  std::mt19937_64 random(7);
  for (int round = 0; round < 4; ++round) {
    const std::uint64_t a = random();
    const std::uint64_t b = random();
    const std::uint64_t c = random();
    const auto a32 = static_cast<std::uint32_t>(a);
    const auto b32 = static_cast<std::uint32_t>(b);
    const auto c32 = static_cast<std::uint32_t>(c);
    for (unsigned table = 0; table < tables.size(); ++table) {
      EXPECT_EQ(of_64_bits[table](a, b, c), look_up(table, a, b, c)) << "table " << table;
      EXPECT_EQ(of_32_bits[table](a32, b32, c32), look_up(table, a32, b32, c32)) << "table " << table;
      const Vector result = of_vectors[table](Vector{a, b}, Vector{b, c}, Vector{c, a});
      EXPECT_EQ(result[0], look_up(table, a, b, c)) << "table " << table;
      EXPECT_EQ(result[1], look_up(table, b, c, a)) << "table " << table;
    }
  }
}

}  // namespace
}  // namespace warpcipher
