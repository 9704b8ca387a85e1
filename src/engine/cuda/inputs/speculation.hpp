// SPDX-License-Identifier: Apache-2.0
// Starting the work on a batch before the host knows what the batch is like. The GPU makes the plan (batch/survey.hpp),
// and from its end until a kernel that the host launches then begins, nothing is done for 30 us. So the host launches
// the kernel that suits messages as long as their buffer says, and the kernel looks itself:
//
//   host     ... plan, text on a guess | waits                         | holds: done    no: text as the survey says
//   device   plan ...................... text: answers; holds? no: ends
//
// Nothing is written where the survey found fault, or the messages are not like that.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace warpcipher::cuda {

// What the host must know before it starts the work. Types as atomic operations take them.
struct Survey {
  std::uint32_t bad;     // not 0: some message is wrong, or may be
  std::uint32_t failed;  // messages whose tag or padding is not right: once they have run
  unsigned long long units;
  unsigned long long most_units;
  unsigned long long hash_blocks;  // of AAD and text
  unsigned long long most_hash_blocks;
  unsigned long long tiles;
  unsigned long long chunks;    // GCM
  unsigned long long first_in;  // sectors (lane_table/hybrid_rows.hpp): where the first begins
  unsigned long long first_out;
};

// What a kernel tells the host, in page-locked memory.
struct Answer {
  Survey survey;
  std::uint32_t is_there;  // not 0: all of it
};

struct Guess {
  Survey* survey = nullptr;  // nullptr: no guess, the host knows
  Answer* answer = nullptr;
  std::uint64_t least_units = 0;    // of all messages
  std::uint64_t most_units = 0;     // of one
  std::uint32_t units_of_tile = 0;  // not 0: tiles are cut of so many, and more than half of them are there
  // Not 0: so many units in all, in messages of no more than others_most, are for another kernel on the same stream,
  // which also answers: `answer` is nullptr.
  std::uint64_t others_units = 0;
  std::uint64_t others_most = 0;
};

WARPCIPHER_HD constexpr bool holds(const Guess& guess, const Survey& survey) {
  return survey.bad == 0 && survey.units >= guess.least_units && survey.most_units <= guess.most_units &&
         2 * survey.units > guess.units_of_tile * survey.tiles &&
         (guess.others_units == 0 || survey.units < guess.others_units || survey.most_units > guess.others_most);
}

}  // namespace warpcipher::cuda
