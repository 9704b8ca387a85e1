// SPDX-License-Identifier: Apache-2.0
// What searches: a Searcher for each kind of device, which prepares a SearchTask for a template and a test; the task
// then runs ranges of key numbers. What runs where, and what is recorded, is the caller's business.
//
// For who writes one. A range is [first, first + count), and the caller makes `first` a multiple of preferred_count()
// wherever it can. With count = 2^k the low k free bits of the space (KeySpace::free_bits) take all values, and the
// rest of the key is fixed, so an implementation is free to permute these k bits: lanes of a bitsliced word, loop,
// threads, in any assignment. free_bits() starts with the bits that are cheapest to change in the innermost loop. A hit
// at permuted position p is reported as first + (the number whose bits are p's, put back in order). Where a range is
// not aligned, test the aligned ranges around its ends and drop hits outside. Where the space has fewer free bits than
// lanes, equal lanes are tested twice and reported once. Candidate lists: KeyCursor::next_combination walks through
// their combinations on the host, each with 2^F keys below it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "search/key_space.hpp"
#include "search/key_test.hpp"

namespace warpcipher::search {

// A search prepared for one device: kernels are chosen or compiled, tables are in place. One thread at a time.
class SearchTask {
 public:
  virtual ~SearchTask() = default;

  // How many keys to give to one run: enough that the device is used well, few enough (about a second) that a stop
  // loses little. A power of two, at most 2^62.
  virtual std::uint64_t preferred_count() const = 0;

  // Tests the keys first to first + count - 1, all below the space's size, count from 1 to 2^63. Appends to `hits` the
  // number of every key of the range that passes the whole test, or passes its first pair: the caller verifies. None is
  // missed, none outside of the range or twice, in no order, however many they are. Looks at `cancel` several times a
  // second. Returns count, or less when it was cancelled: the first that many keys were tested, and only their hits
  // appended. Throws Error{engine_failure, out_of_memory}.
  virtual std::uint64_t run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                            const std::atomic<bool>& cancel) = 0;
};

class Searcher {
 public:
  virtual ~Searcher() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;

  // Empty when it can run here, else why it cannot and what to do about it.
  virtual const std::string& unavailable_reason() const = 0;

  // Its devices, one line each; each can run a task of its own at the same time. Empty when it cannot run.
  virtual std::vector<std::string> devices() const = 0;

  // Space and test are of one cipher. device: index into devices(). Throws Error{engine_unavailable, engine_failure}.
  virtual std::unique_ptr<SearchTask> prepare(std::shared_ptr<const KeySpace> space,
                                              std::shared_ptr<const KeyTest> test, std::size_t device) = 0;
};

// Every searcher of this build, the fastest kind first, whether it can run here or not.
std::span<Searcher* const> searchers();

// The searcher of that name; throws Error{engine_unavailable} when it is unknown or cannot run here, and says why.
Searcher& find_searcher(std::string_view name);

}  // namespace warpcipher::search
