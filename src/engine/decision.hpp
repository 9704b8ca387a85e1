// SPDX-License-Identifier: Apache-2.0
// A device's kernels for a batch, and why: for people. Running a batch does not use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mode/algorithm.hpp"

namespace warpcipher {

// A batch of messages of one length, in device memory at multiples of 16, in columns and without AAD.
struct BatchShape {
  const Algorithm& algorithm;
  Direction direction = Direction::encrypt;
  std::uint64_t messages = 1;
  std::uint64_t size = 0;  // bytes of text each
  std::uint64_t keys = 1;  // keys that the messages share
};

struct Candidate {
  std::string_view name;
  std::string_view description;
  bool is_chosen;
  std::string reason;  // why it is chosen, or why not
};

// One question, and its candidates in the order of preference; one of them is chosen.
struct Decision {
  std::string_view subject;
  std::vector<Candidate> candidates;
};

}  // namespace warpcipher
