// SPDX-License-Identifier: Apache-2.0
// A scanner tests ranges of keys on a processor core. Each cipher has its own; make_plain_scanner() takes every search
// that no other fits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/wipe.hpp"
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

// The common part of all scanners that test one key in each lane of a vector: cuts a range into blocks, fills the
// lanes, and tests candidates with the whole test.

// Turns a range of key numbers into blocks for code that tests many keys at once: one key in each lane, and a loop that
// changes the same few bits in all lanes. A block is
//
//   number = base + (lane << loop_bits) + loop        lane from 0 to lanes - 1, loop from 0 to 2^loop_bits - 1
//
// The loop changes only the first free bits of the space, which are the cheapest to change. Lanes differ in the free
// bits that follow. If there are too few of these, each lane has its own combination of candidates.
class LaneKeys {
 public:
  // lanes: a power of two, 2^n. There are at most max(most_loop_bits, n - 1) loop bits. The space must outlive the
  // object.
  LaneKeys(const KeySpace& space, std::size_t lanes, std::size_t most_loop_bits);

  std::size_t lanes() const { return lanes_; }
  std::size_t loop_bits() const { return loop_bits_; }
  std::uint64_t block_len() const { return std::uint64_t{lanes_} << loop_bits_; }

  // The base of the block that contains the number, which is below the space's size. The next base is block_len()
  // further.
  KeyNumber base_of(const KeyNumber& number) const;

  // Lanes differ in free bits, not in candidates; stepping through candidates is slow.
  bool by_bits() const { return by_bits_; }

  // Fills the lanes for one block after another.
  class Walk {
   public:
    // base: of the first block. The LaneKeys must outlive the object.
    Walk(const LaneKeys& lane_keys, const KeyNumber& base);

    const KeyNumber& base() const { return base_; }

    // Writes the keys of the block's lanes, one after another. Loop bits are zero, parity bits are arbitrary. Lanes
    // past the end of the space get arbitrary keys. keys: lanes() times the space's key_len() bytes.
    void fill(std::uint8_t* keys);

    // Moves to the next block; call it after fill().
    void next();

   private:
    const LaneKeys& lane_keys_;
    KeyNumber base_;
    std::optional<KeyCursor> cursor_;  // at the next lane's combination
    KeyNumber combinations_left_;
  };

 private:
  const KeySpace& space_;
  std::size_t lanes_;
  std::size_t loop_bits_ = 0;
  bool by_bits_ = false;  // lanes differ in free bits
  SecretBytes patterns_;  // added to the base's key in each lane
};

// Memory aligned to 64 bytes, wiped when freed.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size) : size_(size), data_(::operator new[](size, std::align_val_t{64})) {}
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes() {
    secure_wipe(data_, size_);
    ::operator delete[](data_, std::align_val_t{64});
  }

  void* get() const { return data_; }
  std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(data_); }

 private:
  std::size_t size_;
  void* data_;
};

// Code: std::size_t search(const std::uint8_t* keys, void* workspace, std::uint32_t* candidates) const, as
// DesMeetLanes::search says. searched: the space from which lanes are filled. space and test: the original ones; they
// number keys alike, and the test decides.
template <class Code>
class LaneScanner final : public Scanner {
 public:
  LaneScanner(std::string name, SpacePointer searched, SpacePointer space, TestPointer test, Code code,
              std::size_t lanes, std::size_t most_loop_bits)
      : name_(std::move(name)),
        searched_(std::move(searched)),
        space_(std::move(space)),
        test_(std::move(test)),
        lane_keys_(*searched_, lanes, most_loop_bits),
        code_(std::move(code)) {
    code_.prepare(lane_keys_, *searched_);
  }

  std::string name() const override { return name_; }
  std::uint64_t grain() const override {
    return std::max(lane_keys_.by_bits() ? code_.grain() : walked_grain, lane_keys_.block_len());
  }

  void run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits) const override {
    const AlignedBytes keys(lane_keys_.lanes() * searched_->key_len());
    const AlignedBytes workspace(code_.workspace_len());
    std::vector<std::uint32_t> candidates(lane_keys_.block_len());
    Secret<std::array<std::uint8_t, max_key_len>> key;
    const KeyNumber end = first + KeyNumber(count);
    for (LaneKeys::Walk walk(lane_keys_, lane_keys_.base_of(first)); walk.base() < end; walk.next()) {
      walk.fill(keys.bytes());
      const std::size_t found = code_.search(keys.bytes(), workspace.get(), candidates.data());
      for (std::size_t i = 0; i < found; ++i) {
        const KeyNumber number = walk.base() + KeyNumber(candidates[i]);
        if (number < first || number >= end) continue;
        space_->key_at(number, key->data());
        if (test_->passes(key->data())) hits.push_back(number);
      }
    }
  }

 private:
  static constexpr std::uint64_t walked_grain = std::uint64_t{1} << 17;

  std::string name_;
  SpacePointer searched_;
  SpacePointer space_;
  TestPointer test_;
  LaneKeys lane_keys_;
  Code code_;
};

}  // namespace warpcipher::search::cpu
