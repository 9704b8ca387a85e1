// SPDX-License-Identifier: Apache-2.0
// check_messages and the rules of ChaCha20 and GCM-SIV: lengths, counters and nonces.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "message_support.hpp"

namespace warpcipher {
namespace {

using namespace test;

// RFC 8439, RFC 8452 and draft-irtf-cfrg-xchacha: nonces of one length, whole tags, and limits of their own.
TEST(CheckMessages, RefusesWhatChaChaAndGcmSivDoNotTake) {
  const auto cut = [](std::size_t len) { return [len](Message& m) { m.iv_len = len; }; };
  expect_says(refusal_of("chacha20", 16, cut(12)), {"IV of 16 bytes", "counter of 4 bytes", "got 12"});
  expect_says(refusal_of("chacha20-poly1305", 16, cut(11)), {"nonce of 12 bytes", "got 11"});
  expect_says(refusal_of("xchacha20-poly1305", 16, cut(12)), {"nonce of 24 bytes", "got 12"});
  expect_says(refusal_of("aes-128-gcm-siv", 16, cut(0)), {"nonce of 12 bytes", "got none"});
  for (const char* name : {"chacha20-poly1305", "xchacha20-poly1305", "aes-256-gcm-siv"}) {
    for (const std::size_t tag_len : {0u, 4u, 12u, 15u, 17u}) {
      expect_says(refusal_of(name, 16, [=](Message& m) { m.tag_len = tag_len; }), {"a tag of 16 bytes"});
    }
  }
  const auto of_len = [](std::uint64_t len) { return [len](Message& m) { m.in_len = m.out_len = len; }; };
  expect_says(refusal_of("chacha20-poly1305", 16, of_len((1ull << 38) - 63)), {"at most 274877906880"});
  expect_says(refusal_of("aes-128-gcm-siv", 16, of_len((1ull << 36) + 1)), {"at most 68719476736"});
  expect_says(refusal_of("aes-128-gcm-siv", 16, [](Message& m) { m.aad = m.iv, m.aad_len = (1ull << 36) + 1; }),
              {"at most 68719476736 bytes of associated data"});
}

// RFC 8439, section 2.3: 32 bits number the blocks of a key stream.
TEST(CheckMessages, RefusesACounterThatWouldWrap) {
  std::uint8_t iv[16] = {0xfe, 0xff, 0xff, 0xff};
  const auto from = [&](std::size_t len) {
    return refusal_of("chacha20", 200, [&, len](Message& m) { m.iv = iv, m.in_len = m.out_len = len; });
  };
  EXPECT_EQ(from(128), "accepted");
  expect_says(from(129), {"does not wrap", "from 4294967294", "128 bytes", "got 129"});
  iv[0] = 0xff;
  EXPECT_EQ(from(64), "accepted");
  expect_says(from(65), {"64 bytes, got 65"});
}

// RFC 8452, section 9: a nonce of GCM-SIV may come twice. Those of ChaCha20-Poly1305 may not; one that two algorithms
// share under the same bytes of key is used once with each.
TEST(CheckMessages, KnowsWhichNoncesMayRepeat) {
  std::mt19937 random(8);
  const auto twice = [&](const char* first, const char* second) {
    std::vector<Sample> samples;
    const Algorithm& algorithm = find_algorithm(first);
    const std::vector<std::uint8_t> bytes = random_bytes(random, algorithm.key_len());
    const Key key(algorithm, bytes), other(find_algorithm(second), bytes);
    for (int i = 0; i < 2; ++i)
      samples.emplace_back(random, find_algorithm(i == 0 ? first : second), Direction::encrypt, 20);
    Message messages[] = {samples[0].message, samples[1].message};
    messages[0].key = &key;
    messages[1].key = &other;
    messages[1].iv = messages[0].iv;
    return refusal(messages);
  };
  EXPECT_EQ(twice("aes-128-gcm-siv", "aes-128-gcm-siv"), "accepted");
  EXPECT_EQ(twice("aes-256-gcm", "chacha20-poly1305"), "accepted");
  expect_says(twice("chacha20-poly1305", "chacha20-poly1305"),
              {"messages 0 and 1", "a nonce of chacha20-poly1305 must never be used twice with one key"});
  expect_says(twice("xchacha20-poly1305", "xchacha20-poly1305"), {"a nonce of xchacha20-poly1305"});
}

}  // namespace
}  // namespace warpcipher
