// SPDX-License-Identifier: Apache-2.0
// Turns a range of key numbers into blocks for code that tests many keys at once: one key in each lane, and a loop that
// changes the same few bits in all lanes. A block is
//
//   number = base + (lane << loop_bits) + loop        lane from 0 to lanes - 1, loop from 0 to 2^loop_bits - 1
//
// The loop changes only the first free bits of the space, which are the cheapest to change. Lanes differ in the free
// bits that follow. If there are too few of these, each lane has its own combination of candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/wipe.hpp"
#include "search/key_space.hpp"

namespace warpcipher::search::cpu {

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

}  // namespace warpcipher::search::cpu
