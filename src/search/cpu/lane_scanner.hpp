// SPDX-License-Identifier: Apache-2.0
// The common part of all scanners that test one key in each lane of a vector: cuts a range into blocks, fills the
// lanes, and tests candidates with the whole test.
#pragma once

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "search/cpu/lane_keys.hpp"
#include "search/cpu/scanner.hpp"

namespace warpcipher::search::cpu {

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
