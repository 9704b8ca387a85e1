// SPDX-License-Identifier: Apache-2.0
// Data in runs are sorted as std::sort does it, whether the runs lie apart or not.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "core/sort_runs.hpp"

namespace warpcipher {
namespace {

void expect_sorted(std::vector<int> values) {
  std::vector<int> expected = values;
  std::sort(expected.begin(), expected.end());
  sort_runs(values, std::less<>());
  EXPECT_EQ(values, expected);
}

TEST(SortRuns, SortsRunsThatLieApartAndOthers) {
  expect_sorted({});
  expect_sorted({7});
  expect_sorted({1, 2, 2, 3});
  expect_sorted({5, 6, 7, 1, 2, 3, 9, 10});
  expect_sorted({5, 6, 7, 1, 2, 5, 7, 10});  // runs that touch
  expect_sorted({5, 8, 1, 6, 2, 9});         // runs that meet
  expect_sorted({9, 8, 7, 6});
  std::mt19937 random(19);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> values;
    for (int run = 0; run < 5; ++run) {
      int next = static_cast<int>(random() % 100);
      for (auto i = random() % 20; i > 0; --i) values.push_back(next += static_cast<int>(random() % 3));
    }
    expect_sorted(values);
  }
}

}  // namespace
}  // namespace warpcipher
