// SPDX-License-Identifier: Apache-2.0
// Host data goes to a device in pieces and comes back right: packed, cut with the right chaining values, or whole.
#include <gtest/gtest.h>

#include <deque>

#include "host_device_engine.hpp"
#include "pipeline/staging.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::HostDeviceEngine;
using test::Sample;

constexpr std::size_t piece_len = 1024;

// Runs the samples on the reference engine and through `engine`, and compares everything that may be written.
void expect_same(std::deque<Sample>& samples, bool in_place) {
  HostDeviceEngine engine;
  std::vector<Message> messages, expected;
  std::deque<test::Bytes> expected_out, expected_tag;
  for (Sample& s : samples) {
    Message m = s.message;
    m.out = expected_out.emplace_back(s.out).data();
    m.tag = expected_tag.emplace_back(s.tag).data();
    expected.push_back(m);
  }
  std::vector<Status> statuses(samples.size(), Status::ok), expected_statuses = statuses;
  reference_engine().run(make_plan(expected, 256), expected_statuses, nullptr);
  for (Sample& s : samples) {
    if (in_place) s.alias();
    messages.push_back(s.message);
  }
  run_through_device(engine, messages, statuses, piece_len);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Message& m = samples[i].message;
    SCOPED_TRACE(std::string(m.algorithm().name) + " of " + std::to_string(m.in_len));
    EXPECT_EQ(statuses[i], expected_statuses[i]);
    EXPECT_EQ(0, std::memcmp(m.out, expected_out[i].data(), m.output_len()));
    EXPECT_EQ(samples[i].tag, expected_tag[i]);
    EXPECT_TRUE(samples[i].guard_intact());
  }
  EXPECT_TRUE(engine.balanced());
}

TEST(Staging, CutsLongMessagesWithTheRightChain) {
  std::mt19937 random(1);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const std::size_t len : {0u, 1u, 15u, 16u, 17u, 1008u, 1024u, 1040u, 5000u}) {
        for (const bool in_place : {false, true}) {
          std::deque<Sample> one;
          one.emplace_back(random, algorithm, direction, test::valid_len(algorithm, len));
          expect_same(one, in_place);
        }
      }
    }
  }
}

TEST(Staging, PadsTheLastPieceAlone) {
  std::mt19937 random(2);
  for (const char* name : {"aes-128-ecb", "aes-256-cbc", "des-ede3-ecb"}) {
    for (std::size_t len = 2030; len < 2070; ++len) {
      std::deque<Sample> one;
      one.emplace_back(random, find_algorithm(name), Direction::encrypt, len, Padding::pkcs7);
      expect_same(one, false);
    }
  }
}

TEST(Staging, PacksManyMessagesOfEveryKind) {
  std::mt19937 random(3);
  for (const bool in_place : {false, true}) {
    std::deque<Sample> many;
    for (int i = 0; i < 300; ++i) {
      const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
      const std::size_t len = random() % (i % 10 == 0 ? 3000 : 300);
      many.emplace_back(random, algorithm, static_cast<Direction>(random() % 2), test::valid_len(algorithm, len));
    }
    expect_same(many, in_place);
  }
}

TEST(Staging, PacksShortMessagesIntoFewRuns) {
  std::mt19937 random(4);
  HostDeviceEngine engine;
  std::deque<Sample> many;
  std::vector<Message> messages;
  for (int i = 0; i < 64; ++i) {
    many.emplace_back(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 100);
    messages.push_back(many.back().message);
  }
  std::vector<Status> statuses(messages.size(), Status::ok);
  run_through_device(engine, messages, statuses, piece_len);
  EXPECT_EQ(engine.runs, 16);  // 256 bytes of room each, 4 to a piece
}

TEST(Staging, BoundsItsMemory) {
  std::mt19937 random(5);
  HostDeviceEngine engine;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 1 << 17);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1}, piece_len);
  EXPECT_LE(engine.most_allocated, 2 * staging_pieces * piece_len);
}

TEST(Staging, AFailureFreesEverything) {
  std::mt19937 random(6);
  for (const int run : {1, 2, 5}) {
    HostDeviceEngine engine;
    engine.fail_on_run = run;
    Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 10000);
    Status status = Status::ok;
    EXPECT_THROW(run_through_device(engine, {&sample.message, 1}, {&status, 1}, piece_len), Error);
    EXPECT_TRUE(engine.balanced());
  }
}

}  // namespace
}  // namespace warpcipher
