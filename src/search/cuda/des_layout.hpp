// SPDX-License-Identifier: Apache-2.0
// Decides where each free bit of a key space changes in the search kernel for DES, and which bits of the block are
// compared. The choice is made for each template, so that the innermost loop has the fewest gates.
//
// The low bits of a key's number, by where they change:
//
//   granule_bits   lanes of a word (5), loops of a thread (8), threads of a block (7): one block tests a granule
//   block_bits     blocks of a launch: consecutive granules
//   the rest       fixed for a launch, like the bits that the template knows
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "search/cuda/des_circuit.hpp"

namespace warpcipher::search::cuda {

inline constexpr std::size_t lane_bits = 5;

// Bits that the loops compare for each key; one key in 2^8 gets the full test. They are the outputs of two S-boxes: a
// third would cost 108 gates, while the full test of so few keys costs 40.
inline constexpr std::size_t loop_comparisons = 8;

// The number of bits that change in each place; never changes the result.
struct DesShape {
  std::size_t loop_bits = 8;    // fewer: less shared between keys; more: fewer threads for the same range
  std::size_t thread_bits = 7;  // 128 threads: their shared memory fits the smallest GPU
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
  double cost = 0;                                          // average gates of a turn
};

// positions[i]: the position in PC-1's output of bit i of the number, for the shape's launch_bits() lowest bits, or as
// many as exist, at least granule_bits(). compared: gets the comparisons for the loops, loop_comparisons of them.
DesLayout choose_layout(const DesCircuit& circuit, std::span<const std::uint8_t> positions, const DesShape& shape,
                        std::vector<Comparison>& compared);

// Where a node changes: from 0, the innermost loop, to loops.size(), once for each thread.
class Levels {
 public:
  Levels(std::span<const std::uint8_t> positions, std::span<const std::uint8_t> loops);
  std::size_t of(const KeyBits& keys) const;
  std::size_t count() const { return positions_.size() + 1; }

 private:
  std::vector<std::uint8_t> positions_;
};

// Marks the nodes on which the roots depend; for a known pass, all of its inputs. `marks` has an entry for each node of
// the circuit.
void mark_needed(const DesCircuit& circuit, std::span<const NodeId> roots, std::vector<bool>& marks);

}  // namespace warpcipher::search::cuda
