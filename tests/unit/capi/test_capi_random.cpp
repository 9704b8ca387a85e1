// SPDX-License-Identifier: Apache-2.0
// Random arrays through the C ABI.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "warpcipher.h"

namespace {

const std::array<std::uint8_t, 32> key{};
const wc_random_stream chacha{"chacha20", key.data(), 0};

// RFC 8439, appendix A.1, test vectors 1 and 2: blocks 0 and 1 of a key and a nonce of zeros.
TEST(CapiRandom, IsTheKeyStreamOfTheRfc) {
  const std::array<std::uint8_t, 8> first = {0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90};
  const std::array<std::uint8_t, 8> second = {0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a};
  std::array<std::uint8_t, 72> out{};
  ASSERT_EQ(wc_random_bytes(nullptr, out.data(), out.size(), WC_MEMORY_HOST, &chacha, 0, nullptr), WC_OK)
      << wc_last_error();
  EXPECT_EQ(std::memcmp(out.data(), first.data(), first.size()), 0);
  EXPECT_EQ(std::memcmp(out.data() + 64, second.data(), second.size()), 0);
}

TEST(CapiRandom, WordsOfTheWholeRangeAreBytes) {
  std::array<std::uint32_t, 9> words{};
  std::array<std::uint32_t, 9> bytes{};
  ASSERT_EQ(wc_random_words("cpu", words.data(), 9, 4, 0, WC_MEMORY_HOST, &chacha, 8, nullptr), WC_OK);
  ASSERT_EQ(wc_random_bytes("reference", bytes.data(), 36, WC_MEMORY_HOST, &chacha, 8, nullptr), WC_OK);
  EXPECT_EQ(words, bytes);
}

TEST(CapiRandom, WordsAreBelowTheirBound) {
  std::vector<std::uint8_t> words(6000);
  ASSERT_EQ(wc_random_words(nullptr, words.data(), words.size(), 1, 6, WC_MEMORY_HOST, &chacha, 0, nullptr), WC_OK);
  std::array<int, 6> counts{};
  for (const std::uint8_t word : words) {
    ASSERT_LT(word, 6);
    ++counts[word];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

TEST(CapiRandom, RefusesWhatCannotBeRight) {
  std::array<std::uint8_t, 16> out{};
  const auto expect = [&](wc_status status, const char* text) {
    EXPECT_EQ(status, WC_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(wc_last_error(), text), nullptr) << wc_last_error();
  };
  const wc_random_stream unknown{"aes-128-ctr", key.data(), 0};
  const wc_random_stream keyless{"chacha20", nullptr, 0};
  const auto host = WC_MEMORY_HOST;
  expect(wc_random_bytes(nullptr, out.data(), 16, host, nullptr, 0, nullptr), "from is a null pointer");
  expect(wc_random_bytes(nullptr, out.data(), 16, host, &unknown, 0, nullptr), "expected chacha20 or aes-256-ctr");
  expect(wc_random_bytes(nullptr, out.data(), 16, host, &keyless, 0, nullptr), "key is a null pointer");
  expect(wc_random_bytes(nullptr, nullptr, 16, host, &chacha, 0, nullptr), "out is a null pointer");
  expect(wc_random_bytes("cuda", out.data(), 16, host, &chacha, 0, nullptr), "expected auto, cpu or reference");
  expect(wc_random_bytes(nullptr, out.data(), 16, host, &chacha, (std::uint64_t{1} << 56) - 15, nullptr), "2^56");
  expect(wc_random_words(nullptr, out.data(), 2, 3, 0, host, &chacha, 0, nullptr), "word_len is 3");
  expect(wc_random_words(nullptr, out.data(), 2, 1, 257, host, &chacha, 0, nullptr), "within 0 to 255");
  expect(wc_random_words(nullptr, out.data(), SIZE_MAX / 4, 8, 0, host, &chacha, 0, nullptr), "count");
  expect(wc_random_words(nullptr, out.data(), 2, 1, 6, host, &chacha, 2, nullptr), "expected a multiple of 4");
  EXPECT_EQ(out, (std::array<std::uint8_t, 16>{}));
  EXPECT_EQ(wc_random_bytes(nullptr, nullptr, 0, host, &chacha, 0, nullptr), WC_OK);
}

}  // namespace
