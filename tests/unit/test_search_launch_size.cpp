// SPDX-License-Identifier: Apache-2.0
// The sizes of a GPU search's launches: they get shorter where they take too long, but never so small that the device
// stands idle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "search/cuda/launch_size.hpp"

namespace warpcipher::search::cuda {
namespace {

constexpr std::uint64_t fewest = 1000;
constexpr std::uint64_t most = 8192;

LaunchSize make_size() {
  LaunchSize size;
  size.limit(fewest, most);
  return size;
}

// A GPU that works on `fewest` units at once, each of 2^loops turns.
struct Device {
  double seconds_of_turn;

  double seconds(std::uint64_t units, int loops) const {
    const std::uint64_t waves = (units + fewest - 1) / fewest;
    return static_cast<double>(waves) * seconds_of_turn * static_cast<double>(1u << loops);
  }
};

TEST(LaunchSize, NeverGoesBelowWhatFillsTheDevice) {
  LaunchSize size = make_size();
  for (int i = 0; i < 100; ++i) {
    size.took(size.units(), 1.0);
    EXPECT_GE(size.units(), fewest);
  }
  EXPECT_EQ(size.units(), fewest);
  EXPECT_TRUE(size.units_too_long());
}

TEST(LaunchSize, GrowsUntilALaunchTakesLongEnough) {
  LaunchSize size = make_size();
  for (int i = 0; i < 10; ++i) size.took(size.units(), 0.001);
  EXPECT_EQ(size.units(), most);
  EXPECT_TRUE(size.units_too_short());
  size.took(size.units(), 0.05);
  EXPECT_EQ(size.units(), most);
  EXPECT_FALSE(size.units_too_short());
}

TEST(LaunchSize, KeepsItsLengthWhileTheMachineIsBusyForAMoment) {
  LaunchSize size = make_size();
  for (int i = 0; i < 20; ++i) {
    size.took(size.units(), 3.0);
    size.took(size.units(), 3.0);
    size.took(size.units(), 0.05);
    EXPECT_FALSE(size.units_too_long()) << i;
  }
}

TEST(LaunchSize, TheEndOfARangeTellsNothing) {
  LaunchSize size = make_size();
  const std::uint64_t before = size.units();
  for (int i = 0; i < 10; ++i) {
    size.took(fewest - 1, 1.0);
    size.took(1, 0.0001);
  }
  EXPECT_EQ(size.units(), before);
  EXPECT_FALSE(size.units_too_long() || size.units_too_short());
}

// Devices from fast to very slow: with units cut where they are too long, all are used in full in every launch.
TEST(LaunchSize, ShorterUnitsEndWithLaunchesOfTheRightLength) {
  for (const double seconds_of_turn : {1e-9, 1e-6, 3e-5, 5e-5, 1e-3, 5e-3}) {
    const Device device{seconds_of_turn};
    LaunchSize size = make_size();
    int loops = 12;
    for (int launch = 0; launch < 200; ++launch) {
      ASSERT_GE(size.units(), fewest);
      size.took(size.units(), device.seconds(size.units(), loops));
      const bool longer = size.units_too_short();
      if (!longer && !size.units_too_long()) continue;
      const int next = std::clamp(longer ? loops + 1 : loops - 1, 4, 12);
      size.start_again(next != loops);
      loops = next;
      size.limit(fewest, most);
    }
    if (loops > 4) {
      EXPECT_LE(device.seconds(size.units(), loops), 0.1) << seconds_of_turn;
    }
    if (loops < 12) {
      EXPECT_GE(device.seconds(most, loops), 0.04) << seconds_of_turn;
    }
  }
}

}  // namespace
}  // namespace warpcipher::search::cuda
