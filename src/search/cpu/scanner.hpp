// SPDX-License-Identifier: Apache-2.0
// A scanner tests ranges of keys on a processor core. Each cipher has its own; make_plain_scanner() takes every search
// that no other fits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "search/key_space.hpp"
#include "search/key_test.hpp"

namespace warpcipher::search::cpu {

class Scanner {
 public:
  virtual ~Scanner() = default;

  // The instruction set, for people to read.
  virtual std::string name() const = 0;

  // The length of a range that takes about ten milliseconds: a power of two. Ranges that start at a multiple of it are
  // fastest.
  virtual std::uint64_t grain() const = 0;

  // Appends those numbers from first to first + count - 1 that pass the whole test. Any number of threads may call it.
  virtual void run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits) const = 0;
};

using SpacePointer = std::shared_ptr<const KeySpace>;
using TestPointer = std::shared_ptr<const KeyTest>;

// Every scanner that this processor has for a search, the fastest first. Never empty.
std::vector<std::unique_ptr<Scanner>> scanners(const SpacePointer& space, const TestPointer& test);

// The parts of that list. A part is empty where none of its scanners fits the search.
std::vector<std::unique_ptr<Scanner>> des_meet_scanners(const SpacePointer& space, const TestPointer& test);
std::vector<std::unique_ptr<Scanner>> des_scanners(const SpacePointer& space, const TestPointer& test);
std::vector<std::unique_ptr<Scanner>> aes_scanners(const SpacePointer& space, const TestPointer& test);
std::unique_ptr<Scanner> make_plain_scanner(const SpacePointer& space, const TestPointer& test);

}  // namespace warpcipher::search::cpu
