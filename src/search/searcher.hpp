// SPDX-License-Identifier: Apache-2.0
// A Searcher for each kind of device. It prepares a SearchTask for a template and a test; the task then runs ranges of
// key numbers. The caller decides which ranges run where, and records them.
//
// For authors of a searcher. A range is [first, first + count); the caller makes `first` a multiple of
// preferred_count() if it can. With count = 2^k the low k free bits of the space (KeySpace::free_bits) take all values,
// and the rest of the key is constant. So an implementation may permute these k bits: it assigns them to lanes of a
// bitsliced word, loops and threads as it likes. free_bits() starts with the bits that are cheapest to change in the
// innermost loop. A hit at permuted position p is reported as first + (the bits of p in their original order). If a
// range is not aligned, test the aligned ranges around its ends and drop hits outside. If the space has fewer free bits
// than there are lanes, some lanes are equal; report their key once. Candidate lists: KeyCursor::next_combination steps
// through their combinations on the host; each combination has 2^F keys.
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

// A search prepared for one device: kernels are chosen or compiled, tables are in memory. For one thread at a time.
class SearchTask {
 public:
  virtual ~SearchTask() = default;

  // How many keys to give to one run: enough to use the device well, but only about a second of work, so that a stop
  // loses little. A power of two, at most 2^62.
  virtual std::uint64_t preferred_count() const = 0;

  // Tests the keys first to first + count - 1, all below the space's size, count from 1 to 2^63. Appends to `hits` the
  // number of every key of the range that passes the whole test, or passes its first pair; the caller verifies hits. It
  // misses none, and reports none twice and none outside of the range, however many there are; they are in no order.
  // Reads `cancel` several times a second. Returns count, or less when it was cancelled: then exactly that many keys,
  // from the first, were tested, and only their hits are appended. Throws Error{engine_failure, out_of_memory}.
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

  // Its devices, one line for each. Each can run its own task at the same time. Empty when it cannot run.
  virtual std::vector<std::string> devices() const = 0;

  // Space and test are for the same cipher. device: index into devices(). Throws Error{engine_unavailable,
  // engine_failure}.
  virtual std::unique_ptr<SearchTask> prepare(std::shared_ptr<const KeySpace> space,
                                              std::shared_ptr<const KeyTest> test, std::size_t device) = 0;
};

// Every searcher of this build, the fastest kind first, whether it can run here or not.
std::span<Searcher* const> searchers();

// The searcher of that name; throws Error{engine_unavailable} when it is unknown or cannot run here, and says why.
Searcher& find_searcher(std::string_view name);

// The searcher that uses all cores of the processor, and its vector and AES instructions.
Searcher& cpu_searcher();

// The searcher of NVIDIA GPUs. In a build without CUDA it is listed all the same, and says why it cannot run
// (absent.cpp).
Searcher& cuda_searcher();

// The searcher that tests one key after another: slow and obvious. The others are tested against it.
Searcher& reference_searcher();

}  // namespace warpcipher::search
