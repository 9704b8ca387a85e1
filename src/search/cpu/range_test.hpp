// SPDX-License-Identifier: Apache-2.0
// One way to test ranges of keys on a processor core: each cipher has its own, and what no special one fits has
// `make_plain_test`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "search/key_space.hpp"
#include "search/key_test.hpp"

namespace warpcipher::search::cpu {

class RangeTest {
 public:
  virtual ~RangeTest() = default;

  // What runs: the instruction set, for people.
  virtual std::string name() const = 0;

  // A range that takes about ten milliseconds: a power of two. Best are ranges that start at a multiple of it.
  virtual std::uint64_t grain() const = 0;

  // Appends the numbers first to first + count - 1 that pass the whole test. Any number of threads at once.
  virtual void run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits) const = 0;
};

using SpacePointer = std::shared_ptr<const KeySpace>;
using TestPointer = std::shared_ptr<const KeyTest>;

// Every way that this processor has for a search, the fastest first. Never empty.
std::vector<std::unique_ptr<RangeTest>> range_tests(const SpacePointer& space, const TestPointer& test);

// The parts of that list: each empty where it does not fit.
std::vector<std::unique_ptr<RangeTest>> des_meet_tests(const SpacePointer& space, const TestPointer& test);
std::vector<std::unique_ptr<RangeTest>> des_tests(const SpacePointer& space, const TestPointer& test);
std::vector<std::unique_ptr<RangeTest>> aes_tests(const SpacePointer& space, const TestPointer& test);
std::unique_ptr<RangeTest> make_plain_test(const SpacePointer& space, const TestPointer& test);

}  // namespace warpcipher::search::cpu
