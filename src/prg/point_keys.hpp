// SPDX-License-Identifier: Apache-2.0
// Keys of distributed point functions: E. Boyle, N. Gilboa, Y. Ishai, "Function Secret Sharing: Improvements and
// Extensions" (2016), figure 1, with early termination (section 3.2.3 there). For host and device.
//
// A node of the tree is 16 bytes: bit 0 of byte 0 is the control bit, the rest the seed, whose bit 0 counts as 0.
// Its children are the generator's first two; if the control bit is set, the level's correction is added. A node of the
// last level gives a block of output: the generator's third child, plus the value's correction if the control bit is
// set; party 1 takes the negative. A block has 128 bits, 4 integers of 32 or 2 of 64, least significant byte first.
//
//   record of a key    0             16                     16 + 16 depth    24 + 16 depth   32 + 16 depth
//                      root node     correction, a level    right bits       root bit, 63    value's correction
//                                                                            zeros
//
// The root bit is bit 0 of the root's seed: 0 in keys made here, any in keys of Google's library.
// Bit 0 of a correction is the left child's; bit l of the right bits is the right child's of level l.
//
// With a correlated generator (Guo and others 2023) the control bit counts in the seed of a level, both
// children get the same correction, and a node of the last level gives two blocks, from children 2 and 3:
//
//   record of a key    0             16                     16 + 16 depth
//                      root node     correction, a level    corrections of both blocks
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bytes.hpp"
#include "prg/generator.hpp"

namespace warpcipher::prg {

// Where the values of a function are, and the sum of the shares of two parties.
enum class Group : std::uint8_t { gf2, u32, u64 };

inline constexpr int most_bits = 63;

// The functions of points below 2^bits.
struct Domain {
  Generator generator;
  Group group;
  int bits;

  // Of a node of the last level: blocks, and log2 of their points.
  WARPCIPHER_HD constexpr std::size_t blocks() const {
    return is_correlated(generator) ? 2 : 1;
  }
  WARPCIPHER_HD constexpr int block_bits() const {
    return (group == Group::gf2 ? 7 : group == Group::u32 ? 2 : 1) + (is_correlated(generator) ? 1 : 0);
  }
  WARPCIPHER_HD constexpr int depth() const { return bits > block_bits() ? bits - block_bits() : 0; }
  WARPCIPHER_HD constexpr std::size_t record_len() const { return block_len * static_cast<std::size_t>(depth() + 3); }
  // Bytes of a value.
  WARPCIPHER_HD constexpr std::size_t value_len() const {
    return group == Group::gf2 ? 1 : group == Group::u32 ? 4 : 8;
  }
  // Bytes of the values of all points, of which eight of GF(2) share one.
  WARPCIPHER_HD constexpr std::uint64_t share_len() const {
    if (group != Group::gf2) return std::uint64_t{value_len()} << bits;
    return bits < 3 ? 1 : std::uint64_t{1} << (bits - 3);
  }
};

// root_bit: of the root's seed, where the nodes are the root.
struct LevelCorrection {
  alignas(16) std::uint8_t children[2][block_len];
  std::uint8_t root_bit;
};

inline constexpr std::size_t most_blocks = 2;

struct LeafCorrection {
  alignas(16) std::uint8_t blocks[most_blocks][block_len];
  Group group;
  bool negative;  // party 1, whose integers are negated
  std::uint8_t root_bit = 0;
};

// Where things are in a record.
struct RecordLayout {
  int depth;
  bool correlated;

  WARPCIPHER_HD explicit constexpr RecordLayout(const Domain& domain)
      : depth(domain.depth()), correlated(is_correlated(domain.generator)) {}

  WARPCIPHER_HD static constexpr std::size_t correction(int level) { return block_len * static_cast<std::size_t>(level + 1); }
  WARPCIPHER_HD constexpr std::size_t right_bits() const { return correction(depth); }
  WARPCIPHER_HD constexpr std::size_t root_bit() const { return right_bits() + 8; }
  WARPCIPHER_HD constexpr std::size_t value() const { return correction(correlated ? depth : depth + 1); }

  LevelCorrection of_level(const std::uint8_t* record, int level) const {
    LevelCorrection made{};
    for (auto& child : made.children) {
      for (std::size_t i = 0; i < block_len; ++i) child[i] = record[correction(level) + i];
    }
    if (correlated) return made;
    if (level == 0) made.root_bit = record[root_bit()];
    const std::uint64_t right = load_le64(record + right_bits()) >> level & 1;
    made.children[1][0] = static_cast<std::uint8_t>((made.children[1][0] & 0xfe) | right);
    return made;
  }
};

}  // namespace warpcipher::prg
