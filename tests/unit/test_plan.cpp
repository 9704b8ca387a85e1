// SPDX-License-Identifier: Apache-2.0
// The plan covers every unit of every message exactly once, whatever the batch.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "batch/plan.hpp"
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
    std::vector<std::uint64_t> next_unit(messages.size(), 0);
    std::vector<int> seen(messages.size(), 0);
    for (const Group& group : plan.groups) {
      for (const std::uint32_t i : group.messages) {
        ++seen[i];
        EXPECT_EQ(group.algorithm, &messages[i].algorithm());
        EXPECT_EQ(group.direction, messages[i].direction);
      }
      if (!group.parallel) continue;
      for (std::uint64_t t = 0; t < group.tiles(); ++t) {
        const Tile tile = find_tile(plan, group, t);
        EXPECT_EQ(tile.first_unit, next_unit[tile.message]);
        EXPECT_GE(tile.units, 1u);
        EXPECT_LE(tile.units, tile_units);
        next_unit[tile.message] += tile.units;
      }
      for (const std::uint32_t i : group.messages) EXPECT_EQ(next_unit[i], messages[i].units());
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
