// SPDX-License-Identifier: Apache-2.0
// The layout of GHASH on tensor cores (engine/cuda/ghash/matrix.hpp), played through on the host: 32 lanes as an array,
// the one-bit matrix instruction as the PTX manual draws its fragments.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "cipher/gf128.hpp"
#include "engine/cuda/ghash/matrix.hpp"

namespace warpcipher::cuda::ghash {
namespace {

using gf128::Element;

constexpr std::uint32_t lanes = 32;
using Lanes = std::array<std::uint32_t, lanes>;
using Mask = std::array<std::uint32_t, 4>;  // of 128 input bits

Element random_element(std::mt19937_64& random) { return {random(), random()}; }

// The n-tile that computes an output bit.
constexpr std::uint32_t tile_of(OutputBit output) { return output.bit / 2; }

// Word w of a block whose value is `a`, as loaded from memory.
constexpr std::uint32_t word_of(gf128::Element a, std::uint32_t w) {
  const std::uint64_t half = w < 2 ? a.high : a.low;
  return byte_swap32(static_cast<std::uint32_t>(w % 2 == 0 ? half >> 32 : half));
}

// mask[v][b]: of output bit b of word v.
std::array<std::array<Mask, lanes>, 4> masks_of(Element power) {
  const Sequence s = sequence_of(power);
  std::array<std::array<Mask, lanes>, 4> masks{};
  for (std::uint32_t v = 0; v < 4; ++v) {
    for (std::uint32_t b = 0; b < lanes; ++b) {
      const OutputBit output{v, b};
      const std::uint32_t begin = begin_of(tile_of(output), column_of(output));
      for (std::uint32_t w = 0; w < 4; ++w) {
        masks[v][b][w] = mask_word(s.words[3 - v + w], s.words[4 - v + w], begin);
      }
    }
  }
  return masks;
}

// The products of a block with the masks, which are as in memory.
std::array<std::uint32_t, 4> multiply(const std::array<std::uint32_t, 4>& x,
                                      const std::array<std::array<Mask, lanes>, 4>& masks) {
  std::array<std::uint32_t, 4> words{};
  for (std::uint32_t v = 0; v < 4; ++v) {
    for (std::uint32_t b = 0; b < lanes; ++b) {
      int ones = 0;
      for (std::uint32_t w = 0; w < 4; ++w) ones += std::popcount(x[w] & masks[v][b][w]);
      words[v] |= (static_cast<std::uint32_t>(ones) & 1u) << b;
    }
  }
  return words;
}

std::array<std::uint32_t, 4> words_of(Element a) {
  return {word_of(a, 0), word_of(a, 1), word_of(a, 2), word_of(a, 3)};
}

TEST(GhashMatrix, SequenceIsTheCoefficientOfX127) {
  std::mt19937_64 random(1);
  const Element power = random_element(random);
  const Sequence s = sequence_of(power);
  Element product = power;
  for (std::uint32_t n = 0; n < 256; ++n) {
    EXPECT_EQ(s.words[n / 32] >> (31 - n % 32) & 1, product.low & 1) << n;
    product = times_x(product, 1);
  }
}

TEST(GhashMatrix, BeginsWindowsWhereTheOutputBitSays) {
  for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
    for (std::uint32_t column = 0; column < 8; ++column) {
      EXPECT_EQ(begin_of(n, column), 31 - (output_bit(n, column).bit ^ 7));
    }
  }
}

TEST(GhashMatrix, MultipliesByPowersOfX) {
  std::mt19937_64 random(2);
  for (std::uint32_t n = 0; n <= 32; ++n) {
    const Element a = random_element(random);
    const Element x_n{n == 0 ? gf128::gcm_one.high : gf128::gcm_one.high >> n, 0};
    EXPECT_EQ(times_x(a, n), gf128::reference::gcm_multiply(a, x_n)) << n;
  }
}

TEST(GhashMatrix, MultipliesWordsByX32) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20; ++i) {
    const Element a = random_element(random);
    const Element product = times_x(a, 32);
    for (std::uint32_t w = 0; w < 4; ++w) {
      EXPECT_EQ(word_times_x32(w, word_of(a, (w + 3) % 4), word_of(a, 3)), word_of(product, w)) << w;
    }
  }
}

TEST(GhashMatrix, ColumnsNameEachOutputBitOnce) {
  std::array<int, 128> seen{};
  for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
    for (std::uint32_t column = 0; column < 8; ++column) {
      const OutputBit output = output_bit(n, column);
      EXPECT_EQ(tile_of(output), n);
      EXPECT_EQ(column_of(output), column);
      ++seen[32 * output.word + output.bit];
    }
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
}

TEST(GhashMatrix, MasksAreTheProduct) {
  std::mt19937_64 random(3);
  for (const Element power : {gf128::gcm_one, random_element(random), random_element(random), Element{}}) {
    const Element x = random_element(random);
    const Element product = gf128::reference::gcm_multiply(x, power);
    const auto words = multiply(words_of(x), masks_of(power));
    EXPECT_EQ(words, words_of(mend(product)));
    EXPECT_EQ(mend(mend(product)), product);
    EXPECT_EQ(words[0] ^ word_of_mending(words[3]), word_of(product, 0));
  }
}

TEST(GhashMatrix, MasksOfAProductThatWasNotMended) {
  std::mt19937_64 random(6);
  const Element power = random_element(random);
  const Sequence s = sequence_of(power);
  auto masks = masks_of(power);
  for (std::uint32_t v = 0; v < 4; ++v) {
    for (std::uint32_t b = 0; b < lanes; ++b) {
      const OutputBit output{v, b};
      masks[v][b][3] ^= mask_of_mending(s.words[3 - v], s.words[4 - v], begin_of(tile_of(output), column_of(output)));
    }
  }
  const Element x = random_element(random);
  EXPECT_EQ(multiply(words_of(mend(x)), masks), words_of(mend(gf128::reference::gcm_multiply(x, power))));
}

// One load of a step: lane 4 g + t holds block 4 g + t and gives its four words as they are. Row g adds up the even
// words of a group's four blocks, row g + 8 the odd ones, which are x^32 further on; what a lane collects is word t of
// each row.
TEST(GhashMatrix, FragmentsOfOneLoad) {
  std::mt19937_64 random(4);
  const Element h = random_element(random);
  std::array<Element, lanes> blocks{};
  for (Element& block : blocks) block = random_element(random);
  std::array<std::array<std::array<Mask, lanes>, 4>, 4> masks{};
  for (std::uint32_t t = 0; t < 4; ++t) masks[t] = masks_of(gf128::gcm_power(h, 3 - t));

  std::array<Lanes, 2> collected{};  // rows g, rows g + 8
  for (std::uint32_t n = 0; n < tiles_of_product; ++n) {
    // The instruction: register r of A is row g + 8 (r % 2), k = 128 (r / 2) + 32 t and on; register i of B is k = 128
    // i + 32 t and on.
    int counts[16][8] = {};
    for (std::uint32_t row = 0; row < 16; ++row) {
      for (std::uint32_t column = 0; column < 8; ++column) {
        const OutputBit output = output_bit(n, column);
        for (std::uint32_t t = 0; t < 4; ++t) {
          for (std::uint32_t i = 0; i < 2; ++i) {
            const std::uint32_t a = word_of(blocks[4 * (row % 8) + t], 2 * i + row / 8);
            counts[row][column] += std::popcount(a & masks[t][output.word][output.bit][2 * i]);
          }
        }
      }
    }
    for (std::uint32_t l = 0; l < lanes; ++l) {
      for (std::uint32_t j = 0; j < 2; ++j) {
        for (std::uint32_t odd = 0; odd < 2; ++odd) {
          const auto count = static_cast<std::uint32_t>(counts[l / 4 + 8 * odd][2 * (l % 4) + j]);
          collected[odd][l] = collected[odd][l] >> 1 | count << 31;
        }
      }
    }
  }
  for (std::uint32_t g = 0; g < 8; ++g) {
    Element sum{};
    for (std::uint32_t t = 0; t < 4; ++t) {
      sum = gf128::add(sum, gf128::reference::gcm_multiply(blocks[4 * g + t], gf128::gcm_power(h, 3 - t)));
    }
    Element rows[2];
    for (std::uint32_t odd = 0; odd < 2; ++odd) {
      const std::uint32_t* words = &collected[odd][4 * g];
      rows[odd] = mend({std::uint64_t{byte_swap32(words[0])} << 32 | byte_swap32(words[1]),
                        std::uint64_t{byte_swap32(words[2])} << 32 | byte_swap32(words[3])});
    }
    EXPECT_EQ(gf128::add(rows[0], times_x(rows[1], 32)), sum) << g;
  }
}

}  // namespace
}  // namespace warpcipher::cuda::ghash
