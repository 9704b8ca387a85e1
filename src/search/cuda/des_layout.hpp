// SPDX-License-Identifier: Apache-2.0
// Which free bits of a key space change where in the search kernel for DES, and which bits of the block are compared:
// chosen for each template so that the inner loop has the least to do.
//
// The low bits of a key's number, by where they change:
//
//   granule_bits   lanes of a word (5), loops of a thread (8), threads of a block (7): a granule is what one block
//   tests block_bits     blocks of a launch: consecutive granules the rest       fixed for a launch, like the bits that
//   the template knows
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "search/cuda/des_circuit.hpp"

namespace warpcipher::search::cuda {

inline constexpr std::size_t lane_bits = 5;

// Bits that are compared of each key; one key in 2^8 is tested in full. Two S-boxes: a third takes 108 gates, a full
// test of so few keys 40.
inline constexpr std::size_t loop_comparisons = 8;

// Numbers of bits by where they change; never changes the result.
struct DesShape {
  std::size_t loop_bits = 8;    // fewer: less shared between keys; more: fewer threads for the same range
  std::size_t thread_bits = 7;  // 128 threads: what they keep in shared memory fits the smallest GPU
  std::size_t block_bits = 14;  // of a launch, at most: 2^34 keys, 80 ms on an H200
  std::size_t fill_bits = 8;    // of a launch, at least: blocks for all multiprocessors

  std::size_t granule_bits() const { return lane_bits + loop_bits + thread_bits; }
  std::size_t fewest_bits() const { return granule_bits() + fill_bits; }
  std::size_t launch_bits() const { return granule_bits() + block_bits; }
  friend bool operator==(const DesShape&, const DesShape&) = default;
};

// Indices of bits of the number.
struct DesLayout {
  std::vector<std::uint8_t> lanes, loops, threads, blocks;  // loops: the innermost first
  double cost = 0;                                          // gates of a turn, on the average
};

// positions[i]: the position in PC-1's output of bit i of the number, for the shape's launch_bits() lowest (or as many
// as there are, at least granule_bits()). compared: gets the comparisons to make in the loops, loop_comparisons of
// them.
DesLayout choose_layout(const DesCircuit& circuit, std::span<const std::uint8_t> positions, const DesShape& shape,
                        std::vector<Comparison>& compared);

// Where a node changes: 0 in the innermost loop, up to loops.size(): once a thread.
class Levels {
 public:
  Levels(std::span<const std::uint8_t> positions, std::span<const std::uint8_t> loops);
  std::size_t of(const KeyBits& keys) const;
  std::size_t count() const { return positions_.size() + 1; }

 private:
  std::vector<std::uint8_t> positions_;
};

// Marks what the roots depend on, of a known pass all that goes into it; `marks` is as long as the circuit has nodes.
void mark_needed(const DesCircuit& circuit, std::span<const NodeId> roots, std::vector<bool>& marks);

}  // namespace warpcipher::search::cuda
