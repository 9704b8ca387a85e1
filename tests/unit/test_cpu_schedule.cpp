// SPDX-License-Identifier: Apache-2.0
// The schedule holds every message once, or every tile of it, and is shared where the work is worth another thread.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "engine/cpu/piece.hpp"
#include "engine/cpu/schedule.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::Sample;

Schedule schedule_of(const std::deque<Sample>& samples, std::size_t threads, Plan& plan,
                     std::vector<Message>& messages) {
  for (const Sample& sample : samples) messages.push_back(sample.message);
  plan = make_plan(messages, cpu_tile_units);
  return make_schedule(plan, threads);
}

TEST(CpuSchedule, HoldsEveryMessageOrTileOnce) {
  std::mt19937 random(3);
  for (const std::size_t threads : {1u, 2u, 16u}) {
    std::deque<Sample> samples;
    for (int i = 0; i < 40; ++i) {
      const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
      const std::size_t len = random() % (i % 10 == 0 ? 1'500'000 : 3000);
      samples.emplace_back(random, algorithm, static_cast<Direction>(random() % 2), test::valid_len(algorithm, len));
    }
    Plan plan;
    std::vector<Message> messages;
    const Schedule schedule = schedule_of(samples, threads, plan, messages);
    std::multiset<std::uint32_t> whole;
    std::multiset<std::pair<std::uint32_t, std::uint64_t>> tiles, expected_tiles;
    std::multiset<std::uint32_t> expected_whole;
    for (std::uint32_t i = 0; i < messages.size(); ++i) expected_whole.insert(i);
    for (const SplitMessage& split : schedule.split) {
      expected_whole.erase(split.message);
      for (std::uint64_t tile = 0; tile < split.tiles; ++tile) expected_tiles.emplace(split.message, tile);
    }
    for (const Grain& grain : schedule.grains) {
      for (std::uint64_t i = grain.first; i < grain.last; ++i) {
        if (grain.split == Grain::not_split) {
          whole.insert(plan.groups[grain.group].messages[i]);
        } else {
          tiles.emplace(schedule.split[grain.split].message, i);
        }
      }
    }
    EXPECT_EQ(whole, expected_whole);
    EXPECT_EQ(tiles, expected_tiles);
    EXPECT_EQ(schedule.shared, threads > 1);
  }
}

// The time of a text decides, not its length: what is twice as fast is shared from twice the length on.
TEST(CpuSchedule, IsSharedFromTheSameTimeOn) {
  std::mt19937 random(4);
  for (const char* name : {"aes-128-ctr", "aes-256-gcm", "aes-128-xts", "des-ede3-ecb", "chacha20"}) {
    const Algorithm& algorithm = find_algorithm(name);
    const WorkCost cost = cost_of(algorithm, Direction::encrypt);
    const std::size_t len = (min_shared_cost - cost.message) / cost.byte / 16 * 16;
    for (const bool longer : {false, true}) {
      std::deque<Sample> samples;
      samples.emplace_back(random, algorithm, Direction::encrypt, longer ? len + 16 : len - 16);
      Plan plan;
      std::vector<Message> messages;
      EXPECT_EQ(schedule_of(samples, 2, plan, messages).shared, longer) << name;
    }
  }
}

TEST(CpuSchedule, CostsLessWithWiderVectors) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      const bool vectors = is_aes(algorithm.cipher.id) && algorithm.parallel(direction);
      const std::uint64_t wide = cost_of(algorithm, direction, AesForm::vaes).byte;
      const std::uint64_t narrow = cost_of(algorithm, direction, AesForm::aesni).byte;
      const std::uint64_t libcrypto = cost_of(algorithm, direction, AesForm::libcrypto).byte;
      if (vectors) {
        EXPECT_LT(wide, narrow) << algorithm.name;
        EXPECT_LT(wide, libcrypto) << algorithm.name;
      } else {
        EXPECT_LE(wide, libcrypto) << algorithm.name;
      }
      EXPECT_EQ(cost_of(algorithm, direction).byte, cost_of(algorithm, direction, aes_form()).byte);
    }
  }
}

}  // namespace
}  // namespace warpcipher
