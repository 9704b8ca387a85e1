// SPDX-License-Identifier: Apache-2.0
// Random arrays: the streams against published vectors, the host's vectors and threads against the definition, ranges
// word by word, and the distributions by tests whose chance to fail, had the key been drawn at random, is 10^-6 each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/error.hpp"
#include "random/fill.hpp"
#include "random/host.hpp"
#include "random_support.hpp"
#include "support.hpp"

namespace warpcipher::random {
namespace {

using Bytes = warpcipher::test::Bytes;

StreamKey make_key(StreamCipher cipher, std::uint64_t number = 0x0123456789abcdef) {
  StreamKey key{cipher, {}, number};
  for (std::size_t i = 0; i < key_len; ++i) key.key[i] = static_cast<std::uint8_t>(i);
  return key;
}

Bytes fill_host(const StreamKey& key, const Distribution& d, std::uint64_t position, std::uint64_t count,
                std::string_view engine) {
  Bytes bytes(count * d.item_len());
  EXPECT_EQ(fill(key, d, position, {bytes.data(), bytes.size(), Memory::host}, engine), count * d.width());
  return bytes;
}

template <class T>
std::vector<T> values_of(const StreamKey& key, const Distribution& d, std::uint64_t count) {
  const Bytes bytes = fill_host(key, d, 0, count, "auto");
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// RFC 8439, section 2.4.2: the key stream of block 1, whose nonce is 00000000 and 4a000000 00000000.
TEST(RandomStream, IsChaCha20OfTheRfc) {
  const Bytes expected = {0x22, 0x4f, 0x51, 0xf3, 0x40, 0x1b, 0xd9, 0xe1, 0x2f, 0xde, 0x27,
                          0x6f, 0xb8, 0x63, 0x1d, 0xed, 0x8c, 0x13, 0x1f, 0x82, 0x3d, 0x2c,
                          0x06, 0xe2, 0x7e, 0x4f, 0xca, 0xec, 0x9e, 0xf3, 0xcf, 0x78};
  const StreamKey key = make_key(StreamCipher::chacha20, 0x4a000000);
  const Distribution bytes = Distribution::of_bytes(Type::uint8);
  for (const char* engine : {"auto", "cpu", "reference"}) {
    EXPECT_EQ(fill_host(key, bytes, 64, expected.size(), engine), expected) << engine;
  }
}

// SP 800-38A, section F.5.5: the output blocks of a counter that begins with f0f1...f7 f8f9...ff.
TEST(RandomStream, IsAes256OfSp80038a) {
  StreamKey key{StreamCipher::aes256, {}, 0xf0f1f2f3f4f5f6f7};
  const Bytes bytes = {0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d, 0x77, 0x81,
                       0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4};
  std::copy(bytes.begin(), bytes.end(), key.key);
  std::uint32_t words[4];
  key.aes().block(0xf8f9fafbfcfdfeff, words);
  EXPECT_EQ(words[0], 0xf17ddf0bu);
  EXPECT_EQ(words[3], 0x02c560c8u);
}

TEST(RandomStream, DomainsAreApart) {
  const std::uint64_t most = stream_len / AesStream::block_len - 1;
  EXPECT_LT(most, domain::of_attempt(1));
  EXPECT_LT(domain::of_attempt(domain::attempts - 1) + most, domain::of_rejection(0, 0));
  EXPECT_LT(domain::of_attempt(1) + most, domain::of_attempt(2));
  EXPECT_LT(domain::of_rejection(stream_len - 4, 0), domain::of_rejection(0, 1));
  EXPECT_GT(domain::of_rejection(stream_len - 4, domain::rejections - 1), domain::of_rejection(0, 0));
}

class RandomCipher : public testing::TestWithParam<StreamCipher> {};

TEST_P(RandomCipher, EveryWayGivesTheBytesOfTheDefinition) {
  const StreamKey key = make_key(GetParam());
  for (const Distribution& d : test::distributions()) {
    const std::uint64_t count = 9001, first = 11;
    const std::size_t len = d.item_len();
    const Bytes expected = fill_host(key, d, first * d.width(), count, "reference");
    EXPECT_EQ(fill_host(key, d, first * d.width(), count, "auto"), expected);
    Bytes parts(count * len + 1);
    const HostFill fill{key, d, first * d.width(), parts.data() + 1, count};  // not aligned
    const Lines lines(key, 0);
    std::uint64_t at = 0;
    for (std::uint64_t end : {1u, 2u, 4u, 19u, 147u, 2000u, 9001u}) {
      host_baseline.fill_part(fill, lines, at, end);
      at = end;
    }
    EXPECT_EQ(Bytes(parts.begin() + 1, parts.end()), expected) << static_cast<int>(d.kind) << name_of(d.type);
    // A part is what a stream has from there on.
    const Bytes tail = fill_host(key, d, (first + 4001) * d.width(), 5000, "auto");
    EXPECT_TRUE(std::equal(tail.begin(), tail.end(), expected.begin() + static_cast<std::ptrdiff_t>(4001 * len)));
  }
}

TEST_P(RandomCipher, CountersCarry) {
  const StreamKey key = make_key(GetParam());
  const std::uint64_t carry = std::uint64_t{1} << 38;  // 2^32 blocks of ChaCha20
  const Distribution bytes = Distribution::of_bytes(Type::uint8);
  EXPECT_EQ(fill_host(key, bytes, carry - 1000, 2000, "cpu"), fill_host(key, bytes, carry - 1000, 2000, "reference"));
  EXPECT_EQ(fill_host(key, bytes, stream_len - 700, 700, "cpu"),
            fill_host(key, bytes, stream_len - 700, 700, "reference"));
}

TEST_P(RandomCipher, PermutesAsTheDefinition) {
  const StreamKey key = make_key(GetParam());
  for (const std::uint64_t count : {0, 1, 2, 1000, 20000}) {
    std::vector<std::uint32_t> fast(count), slow(count), sorted(count);
    const auto array = [](std::vector<std::uint32_t>& v) {
      return Array{reinterpret_cast<std::uint8_t*>(v.data()), 4 * v.size(), Memory::host};
    };
    EXPECT_EQ(permute(key, 8, Type::int32, array(fast), "auto"), 8 * count);
    permute(key, 8, Type::int32, array(slow), "reference");
    EXPECT_EQ(fast, slow);
    std::sort(fast.begin(), fast.end());
    for (std::uint32_t i = 0; i < count; ++i) sorted[i] = i;
    EXPECT_EQ(fast, sorted);
  }
}

INSTANTIATE_TEST_SUITE_P(Ciphers, RandomCipher, testing::Values(StreamCipher::chacha20, StreamCipher::aes256),
                         [](const auto& cipher) {
                           return cipher.param == StreamCipher::chacha20 ? "ChaCha20" : "Aes";
                         });

// Of all words of 8 bits that are not rejected each value gets equally many; of 16 bits for some spans.
TEST(RandomRange, HasNoBias) {
  for (unsigned span = 1; span <= 255; ++span) {
    const auto threshold = static_cast<std::uint8_t>(256 % span);
    const Range<std::uint8_t, std::uint8_t> range{static_cast<std::uint8_t>(span), threshold, 0};
    std::vector<int> counts(span);
    for (unsigned word = 0; word < 256; ++word) {
      const std::uint8_t words[1] = {static_cast<std::uint8_t>(word)};
      std::uint8_t made[1];
      if (range(words, made)) continue;
      ASSERT_LT(made[0], span);
      ++counts[made[0]];
    }
    for (const int count : counts) ASSERT_EQ(count, 256 / static_cast<int>(span)) << span;
  }
}

// A rejected word is followed by the words of its own blocks, in order.
TEST(RandomRange, TakesFurtherWordsOfItsOwn) {
  const StreamKey key = make_key(StreamCipher::chacha20);
  const ChaChaStream stream = key.chacha();
  const std::uint64_t span = std::uint64_t{3} << 61;  // words whose product has a low half below 2^62 are rejected
  const Distribution d = Distribution::of_integers(Type::uint64, 0, span - 1);
  const auto values = values_of<std::uint64_t>(key, d, 1000);
  const auto words = values_of<std::uint64_t>(key, Distribution::of_integers(Type::uint64, 0, UINT64_MAX), 1000);
  __extension__ using Product = unsigned __int128;
  int rejected = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    std::uint64_t word = words[i];
    for (std::uint32_t n = 0; word * span < (0 - span) % span; ++n) {
      std::uint32_t block[16];
      stream.block((std::uint64_t{1} << 63) + (std::uint64_t{n / 8} << 54) + 2 * i, block);
      word = std::uint64_t{block[n % 8 * 2 + 1]} << 32 | block[n % 8 * 2];
      ++rejected;
    }
    ASSERT_EQ(values[i], static_cast<std::uint64_t>(Product{word} * span >> 64));
  }
  EXPECT_GT(rejected, 100);
}

// Bernoulli's lower half decides where a word equals the upper half.
TEST(RandomBernoulli, IsOnAGridOf64Bits) {
  const StreamKey key = make_key(StreamCipher::chacha20);
  const auto words = values_of<std::uint32_t>(key, Distribution::of_integers(Type::uint32, 0, UINT32_MAX), 1);
  const double equal = std::ldexp(static_cast<double>(words[0]), -32);
  std::uint32_t block[16];
  key.chacha().block(std::uint64_t{1} << 63, block);
  const double lower = std::ldexp(static_cast<double>(block[0] >> 11 << 11), -64);
  const auto draw = [&](double p) {
    return values_of<std::uint8_t>(key, Distribution::of_bernoulli(Type::boolean, p), 1)[0];
  };
  EXPECT_EQ(draw(equal), 0);
  EXPECT_EQ(draw(equal + lower), 0);
  EXPECT_EQ(draw(equal + lower + 0x1p-53), 1);
  EXPECT_EQ(draw(0), 0);
  EXPECT_EQ(draw(1), 1);
}

// The largest distance between the empirical and the true distribution function, times sqrt(n): above 2.73 with
// probability 10^-6 (Kolmogorov).
double distance(std::vector<double> values, const std::function<double(double)>& function) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = function(values[i]);
    most = std::max({most, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return most * std::sqrt(n);
}

constexpr double rare_distance = 2.73;

template <class T>
void expect_fits(const Distribution& d, const std::function<double(double)>& function) {
  for (const StreamCipher cipher : {StreamCipher::chacha20, StreamCipher::aes256}) {
    const auto values = values_of<T>(make_key(cipher, 7), d, 200000);
    EXPECT_LT(distance({values.begin(), values.end()}, function), rare_distance);
  }
}

double normal_function(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

TEST(RandomDistribution, Fits) {
  expect_fits<float>(Distribution::of_uniform(Type::float32, 0, 1), [](double x) { return x; });
  expect_fits<double>(Distribution::of_uniform(Type::float64, -1, 3), [](double x) { return (x + 1) / 4; });
  expect_fits<float>(Distribution::of_normal(Type::float32, 0, 1), normal_function);
  expect_fits<double>(Distribution::of_normal(Type::float64, 5, 2),
                      [](double x) { return normal_function((x - 5) / 2); });
  expect_fits<float>(Distribution::of_exponential(Type::float32, 1), [](double x) { return -std::expm1(-x); });
  expect_fits<double>(Distribution::of_exponential(Type::float64, 3), [](double x) { return -std::expm1(-x / 3); });
  const auto laplace = [](double x) { return x < 0 ? std::exp(x) / 2 : 1 - std::exp(-x) / 2; };
  expect_fits<float>(Distribution::of_laplace(Type::float32, 0, 1), laplace);
  expect_fits<double>(Distribution::of_laplace(Type::float64, 5, 2), [&](double x) { return laplace((x - 5) / 2); });
}

// Pairs of normals are independent: their product has mean 0, and so have those of their squares less 1.
TEST(RandomDistribution, PairsOfNormalsAreIndependent) {
  const auto values =
      values_of<float>(make_key(StreamCipher::chacha20), Distribution::of_normal(Type::float32, 0, 1), 400000);
  double product = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const double x = static_cast<double>(values[i]), y = static_cast<double>(values[i + 1]);
    product += x * y;
    squares += (x * x - 1) * (y * y - 1);
  }
  EXPECT_LT(std::abs(product), 4.9 * std::sqrt(200000.0));
  EXPECT_LT(std::abs(squares), 4.9 * 2 * std::sqrt(200000.0));
}

// The functions against the C library's, in the type above.
TEST(RandomElementary, IsAccurate) {
  for (std::uint32_t i = 0; i < 100000; ++i) {
    const std::uint32_t word = i * 2654435761u;
    const float u = above_zero(word);
    const double exact = -2 * std::log(static_cast<double>(u));
    EXPECT_NEAR(static_cast<double>(minus_two_log(u)), exact, 3e-7 * exact + 1e-12);
    const double half = static_cast<double>(u) / 2;
    EXPECT_NEAR(minus_two_log(half), -2 * std::log(half), 1e-15 * -2 * std::log(half));
    const auto x = static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-32f;
    float sine, cosine;
    sine_cosine(x, sine, cosine);
    EXPECT_NEAR(static_cast<double>(sine), std::sin(M_PI * static_cast<double>(x)), 3e-7);
    EXPECT_NEAR(static_cast<double>(cosine), std::cos(M_PI * static_cast<double>(x)), 3e-7);
    double wide_sine, wide_cosine;
    sine_cosine(static_cast<double>(x), wide_sine, wide_cosine);
    EXPECT_NEAR(wide_sine, std::sin(M_PI * static_cast<double>(x)), 1e-15);
    EXPECT_NEAR(wide_cosine, std::cos(M_PI * static_cast<double>(x)), 1e-15);
  }
  EXPECT_EQ(minus_two_log(1.0f), 0.0f);
  EXPECT_EQ(minus_two_log(1.0), 0.0);
}

TEST(RandomElementary, RoundsToHalf) {
  EXPECT_EQ(to_half(1.0f), 0x3c00);
  EXPECT_EQ(to_half(-2.0f), 0xc000);
  EXPECT_EQ(to_half(65504.0f), 0x7bff);
  EXPECT_EQ(to_half(65519.9f), 0x7bff);
  EXPECT_EQ(to_half(65520.0f), 0x7c00);
  EXPECT_EQ(to_half(1e10f), 0x7c00);
  EXPECT_EQ(to_half(0x1p-24f), 0x0001);
  EXPECT_EQ(to_half(0x1p-25f), 0x0000);         // a tie, to even
  EXPECT_EQ(to_half(0x1.8p-24f), 0x0002);       // the same
  EXPECT_EQ(to_half(1.0f + 0x1p-11f), 0x3c00);  // and the same
  EXPECT_EQ(to_half(1.0f + 0x1.8p-10f), 0x3c02);
  EXPECT_EQ(to_bfloat(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(to_bfloat(1.0f + 0x1.8p-7f), 0x3f82);
}

TEST(RandomUniform, StaysBelowItsUpperEnd) {
  const StreamKey key = make_key(StreamCipher::chacha20);
  // The grid of u is finer than the values: many would be rounded up to 1 + 2^-22.
  const auto values = values_of<float>(key, Distribution::of_uniform(Type::float32, 1, 1 + 0x1p-22), 100000);
  for (const float value : values) ASSERT_TRUE(value == 1.0f || value == 1.0f + 0x1p-23f);
  EXPECT_NE(*std::min_element(values.begin(), values.end()), *std::max_element(values.begin(), values.end()));
}

TEST(RandomRefusals, SayWhatWasExpected) {
  const auto expect = [](const std::function<void()>& call, const char* text) {
    try {
      call();
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::strstr(error.what(), text), nullptr) << error.what();
    }
  };
  const double infinity = std::numeric_limits<double>::infinity();
  expect([] { find_kind("gamma"); }, "expected one of bytes, integers");
  expect([] { find_type("float8"); }, "expected one of bool, int8");
  expect([] { Distribution::of_integers(Type::int8, -129, 0); }, "within -128 to 127");
  expect([] { Distribution::of_integers(Type::int8, 5, 4); }, "not empty");
  expect([] { Distribution::of_integers(Type::boolean, 0, 2); }, "within 0 to 1");
  expect([] { Distribution::of_integers(Type::float32, 0, 2); }, "integers fill integers");
  expect([] { Distribution::of_uniform(Type::int32, 0, 2); }, "uniform fills float16");
  expect([] { Distribution::of_uniform(Type::float16, 1, 1.0001); }, "low below high");
  expect([] { Distribution::of_uniform(Type::float16, 0, 1e6); }, "finite");
  expect([] { Distribution::of_uniform(Type::float64, -1e308, 1e308); }, "finite");
  expect([&] { Distribution::of_normal(Type::float32, infinity, 1); }, "mean is inf");
  expect([] { Distribution::of_normal(Type::float32, 0, -1); }, "std is -1: expected 0 or more");
  expect([] { Distribution::of_exponential(Type::float64, 0); }, "scale is 0");
  expect([&] { Distribution::of_laplace(Type::float64, infinity, 1); }, "mean is inf");
  expect([] { Distribution::of_laplace(Type::float32, 0, -1); }, "scale is -1: expected more than 0");
  expect([] { Distribution::of_bernoulli(Type::boolean, 1.5); }, "p is 1.5: expected 0 to 1");
  expect([] { Distribution::of_bernoulli(Type::boolean, std::nan("")); }, "expected 0 to 1");
}

}  // namespace
}  // namespace warpcipher::random
