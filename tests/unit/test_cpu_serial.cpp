// SPDX-License-Identifier: Apache-2.0
// CBC and CFB encryption and OFB of several AES messages side by side, against the reference engine.
#include <gtest/gtest.h>

#include <vector>

#include "cpu_engine_support.hpp"
#include "engine/cpu/modes.hpp"

namespace warpcipher {
namespace {

using namespace test;

struct Kind {
  const char* mode;
  Direction direction;
};

constexpr Kind kinds[] = {
    {"cbc", Direction::encrypt}, {"cfb", Direction::encrypt}, {"ofb", Direction::encrypt}, {"ofb", Direction::decrypt}};

// As many messages as lanes, more and fewer, of lengths that end lanes at different times, with and without a tail, of
// one key and of several, in place and not.
TEST(CpuSerial, EqualsTheReference) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(21);
  for (const Kind& kind : kinds) {
    for (const int bits : {128, 192, 256}) {
      const Algorithm& algorithm = find_algorithm("aes-" + std::to_string(bits) + "-" + kind.mode);
      for (const std::size_t count : {1u, 2u, 3u, 7u, 8u, 9u, 16u, 17u, 60u}) {
        for (const bool one_key : {true, false}) {
          std::vector<Sample> samples;
          samples.reserve(count);
          for (std::size_t i = 0; i < count; ++i) {
            std::size_t len = random() % 4 == 0 ? random() % 40 : random() % 700;
            const bool pads = algorithm.mode.id == Mode::cbc && random() % 2 != 0;
            if (algorithm.mode.whole_blocks && !pads) len = len / 16 * 16;
            Sample& sample =
                samples.emplace_back(random, algorithm, kind.direction, len, pads ? Padding::pkcs7 : Padding::none);
            if (!pads && random() % 3 == 0) sample.alias();
          }
          std::vector<Message> messages;
          std::vector<Outcome> wanted;
          for (Sample& sample : samples) {
            if (one_key) sample.message.key = samples[0].message.key;
            messages.push_back(sample.message);
            wanted.push_back(expected(sample.message));
          }
          const std::vector<Status> statuses = run_with_threads(messages, 1 + random() % 4);
          for (std::size_t i = 0; i < count; ++i) expect_outcome(samples[i], wanted[i], statuses[i]);
        }
      }
    }
  }
}

TEST(CpuSerial, TakesOnlyModesThatWait) {
  for (const char* name : {"aes-128-ctr", "aes-128-cfb8", "des-cbc", "aes-128-gcm"}) {
    EXPECT_EQ(aes_serial_lanes(find_algorithm(name), Direction::encrypt), 1u) << name;
  }
  EXPECT_EQ(aes_serial_lanes(find_algorithm("aes-128-cbc"), Direction::decrypt), 1u);
  EXPECT_EQ(aes_serial_lanes(find_algorithm("aes-128-cbc"), Direction::encrypt),
            aes_serial_lanes(find_algorithm("aes-256-ofb"), Direction::decrypt));
}

}  // namespace
}  // namespace warpcipher
