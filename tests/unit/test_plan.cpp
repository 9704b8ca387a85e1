// SPDX-License-Identifier: Apache-2.0
// The plan covers every unit of every message exactly once, whatever the batch.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "message/plan.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::Sample;

std::deque<Sample> random_batch(std::mt19937& random, std::size_t count) {
  std::deque<Sample> samples;
  for (std::size_t i = 0; i < count; ++i) {
    const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
    const auto direction = static_cast<Direction>(random() % 2);
    std::size_t len = random() % (random() % 3 == 0 ? 40000 : 600);
    if (random() % 8 == 0) len = 0;
    samples.emplace_back(random, algorithm, direction, test::valid_len(algorithm, len));
  }
  return samples;
}

std::vector<Message> messages_of(const std::deque<Sample>& samples) {
  std::vector<Message> messages;
  for (const Sample& sample : samples) messages.push_back(sample.message);
  return messages;
}

TEST(Plan, CoversEveryUnitOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const auto samples = random_batch(random, random() % 40);
    const auto messages = messages_of(samples);
    const std::uint32_t tile_units = 1u << (random() % 10);
    const Plan plan = make_plan(messages, tile_units);
    std::vector<int> seen(messages.size(), 0);
    for (const Group& group : plan.groups) {
      for (const std::uint32_t i : group.messages) {
        ++seen[i];
        EXPECT_EQ(group.algorithm, &messages[i].algorithm());
        EXPECT_EQ(group.direction, messages[i].direction);
      }
      if (!group.parallel) continue;
      ASSERT_EQ(group.first_tile.size(), group.messages.size() + 1);
      EXPECT_EQ(group.first_tile.front(), 0u);
      for (std::size_t k = 0; k < group.messages.size(); ++k) {  // tiles for all units, and none empty
        const std::uint64_t units = messages[group.messages[k]].units();
        const std::uint64_t tiles = group.first_tile[k + 1] - group.first_tile[k];
        EXPECT_GE(tiles * tile_units, units);
        EXPECT_LT(tiles * tile_units, units + tile_units);
      }
    }
    for (const int times : seen) EXPECT_EQ(times, 1);
  }
}

TEST(Plan, SortsSerialMessagesLongestFirst) {
  std::mt19937 random(2);
  std::deque<Sample> samples;
  for (int i = 0; i < 100; ++i) {
    samples.emplace_back(random, find_algorithm("aes-128-cbc"), Direction::encrypt, 16 * (random() % 50));
  }
  const auto messages = messages_of(samples);
  const Plan plan = make_plan(messages, 256);
  ASSERT_EQ(plan.groups.size(), 1u);
  const Group& group = plan.groups[0];
  EXPECT_FALSE(group.parallel);
  EXPECT_EQ(group.tiles(), messages.size());
  for (std::size_t i = 1; i < group.messages.size(); ++i) {
    EXPECT_GE(messages[group.messages[i - 1]].in_len, messages[group.messages[i]].in_len);
  }
}

// The payload of Harrison 2008, section 7.3, at a sixteenth: chains of eight lengths with parallel messages of two.
std::deque<Sample> mixed_payload(std::mt19937& random) {
  std::deque<Sample> samples;
  for (int i = 0; i < 64; ++i) {
    samples.emplace_back(random, find_algorithm("aes-128-cbc"), Direction::encrypt, std::size_t{16} << i % 8);
  }
  for (int i = 0; i < 122; ++i) {
    samples.emplace_back(random, find_algorithm("aes-128-ctr"), Direction::encrypt, i % 2 == 0 ? 512 : 32);
  }
  return samples;
}

// The order of a plan, without the numbers of its messages.
std::vector<std::size_t> shape_of(const Plan& plan) {
  std::vector<std::size_t> shape{plan.concurrent};
  for (const Group& group : plan.groups) {
    shape.insert(shape.end(), {group.parallel, group.most_units, group.messages.size()});
    if (group.parallel) continue;
    for (const std::uint32_t i : group.messages) shape.push_back(plan.messages[i].in_len);
  }
  return shape;
}

TEST(Plan, PutsChainsFirstAndTheRestWithThemWhateverTheClientsOrder) {
  std::mt19937 random(4);
  const auto samples = mixed_payload(random);
  auto messages = messages_of(samples);
  const Plan plan = make_plan(messages, 256);
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.concurrent, 1u);
  EXPECT_FALSE(plan.groups[0].parallel);
  EXPECT_EQ(plan.groups[0].most_units, 128u);
  EXPECT_TRUE(plan.groups[1].parallel);
  const std::vector<std::size_t> shape = shape_of(plan);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(messages.begin(), messages.end(), random);
    EXPECT_EQ(shape_of(make_plan(messages, 256)), shape);
  }
}

TEST(Plan, PutsTheLongestChainFirstAndVerdictsLast) {
  std::mt19937 random(5);
  std::deque<Sample> samples;
  const auto add = [&](const char* name, Direction direction, std::size_t len) {
    samples.emplace_back(random, find_algorithm(name), direction, len);
  };
  add("aes-128-gcm", Direction::decrypt, 100);
  add("aes-128-ctr", Direction::encrypt, 9000);
  add("aes-256-cbc", Direction::encrypt, 160);
  add("aes-256-gcm", Direction::encrypt, 100);
  add("des-cfb8", Direction::encrypt, 90);  // a unit is a byte
  add("aes-256-cbc", Direction::encrypt, 320);
  const auto messages = messages_of(samples);
  const Plan plan = make_plan(messages, 256);
  EXPECT_EQ(plan.concurrent, 2u);
  std::vector<std::string_view> names;
  for (const Group& group : plan.groups) names.push_back(group.algorithm->name);
  EXPECT_EQ(names,
            (std::vector<std::string_view>{"des-cfb8", "aes-256-cbc", "aes-128-ctr", "aes-256-gcm", "aes-128-gcm"}));
  EXPECT_EQ(plan.groups[1].most_units, 20u);
}

TEST(Plan, LeavesTheLastGroupOnTheStreamOfTheRun) {
  std::mt19937 random(6);
  std::deque<Sample> samples;
  samples.emplace_back(random, find_algorithm("aes-128-cbc"), Direction::encrypt, std::size_t{160});
  EXPECT_EQ(make_plan(messages_of(samples), 256).concurrent, 0u);
  samples.emplace_back(random, find_algorithm("aes-128-ofb"), Direction::encrypt, std::size_t{160});
  EXPECT_EQ(make_plan(messages_of(samples), 256).concurrent, 1u);
}

TEST(Plan, CountsThePaddedBlockAndLeavesStealingInTheLastUnit) {
  std::mt19937 random(3);
  const Sample padded(random, find_algorithm("aes-128-ecb"), Direction::encrypt, 32, Padding::pkcs7);
  EXPECT_EQ(padded.message.units(), 3u);
  EXPECT_EQ(padded.message.output_len(), 48u);
  const Sample stolen(random, find_algorithm("aes-128-xts"), Direction::encrypt, 47);
  EXPECT_EQ(stolen.message.units(), 2u);
  const Sample bytes(random, find_algorithm("aes-128-cfb8"), Direction::decrypt, 47);
  EXPECT_EQ(bytes.message.units(), 47u);
}

TEST(Plan, OfNothingIsEmpty) { EXPECT_TRUE(make_plan({}, 256).groups.empty()); }

}  // namespace
}  // namespace warpcipher
