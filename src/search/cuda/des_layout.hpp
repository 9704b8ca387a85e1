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

#include <cstddef>
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

// Where each node of the circuit is computed, and which nodes are kept in shared memory between the loops.

// How the kernel is written; never changes the result. H200, one kernel, G keys/s: the outer key of two-key triple DES
// with 40 random bits unknown, and DES likewise:
//
//   this                                            53.9    220.3
//   barriers in a turn                              none: 44, 1: 53.8, 2: 53.9, 3: 53.9    2: 218.6
//   multiply-adds replaced by gates                 52.5    214.4
//   loops of 9 or 10 bits, which take 1 or 2 GB     54.0, 54.3    221.7, 222.4
//   4 granules, 128 registers (a kernel before this one, without the full test; with three 49.6 and 218.5)
//                                                   48.8    197.9
//
// Not done: nodes that depend on the innermost bit, but not on the next ones, could be computed further out for both
// its values. That leaves 1850 to 1990 gates of 1990 to 2080, but needs more shared memory than there is for three
// granules; with two granules the pipe is 79% busy (ncu). By these counts it would gain 2% at best.
//
// A gate takes two cycles of a scheduler, whatever else happens; so the bound is 64 gates for each clock and
// multiprocessor. A multiply-add of three registers takes most of another cycle, though it has its own pipe: a
// scheduler reads two registers in a cycle. (Three independent gates and a multiply-add of one, two or three registers
// take 6, 6.5 and 7.1 cycles.) Loads from shared memory are nearly free. A turn of more than
// 128 KB of code falls out of the cache of instructions: 135 KB made 45.5 where 130 KB made 48.9.
struct DesPolicy {
  std::uint32_t granules = 3;  // that a block tests at the same time
  std::uint32_t spills = 148;  // nodes that a thread may keep in shared memory, a word each
  std::uint32_t levels = 4;    // innermost loops that have their own nodes; other nodes: once for each thread
  std::uint32_t barriers = 1;  // for each pass of a turn of the innermost loop
  bool multiply = true;        // key bits that need their own instruction: on the multiply pipe
  friend bool operator==(const DesPolicy&, const DesPolicy&) = default;
};

inline constexpr std::uint32_t no_spill = ~std::uint32_t{0};

class DesPlacement {
 public:
  DesPlacement(const DesCircuit& circuit, std::span<const Comparison> compared, const Levels& levels,
               const DesPolicy& policy);

  // The loop that computes a node: 0 the innermost, the last level outside of all.
  std::size_t level_of(NodeId node) const;

  // Whether the node is computed in the order of the circuit. In the innermost loop those are the nodes of the forward
  // half that the comparisons need; the others are computed when they are first needed.
  bool at_once(NodeId node) const;

  // Whether a comparison depends on it.
  bool is_needed(NodeId node) const { return needed_[node]; }

  // The number of the word of shared memory that holds a node for the loops further in, or no_spill.
  std::uint32_t spill(NodeId node) const { return spills_[node]; }
  std::uint32_t spill_count() const { return spill_count_; }

  // A bit of a half block: left ^ (an S-box's output).
  bool is_sum(NodeId node) const;

 private:
  bool is_gate(NodeId node) const { return circuit_.nodes()[node].kind == Node::Kind::gate; }
  bool is_computed(NodeId node) const { return is_gate(node) || circuit_.nodes()[node].kind == Node::Kind::whole; }
  template <class Use>
  void each_source(NodeId node, Use&& use) const;
  void mark(std::span<const Comparison> comparisons, bool backward, std::vector<bool>& marks) const;
  void choose_spills(std::span<const Comparison> compared);
  void add_spill(NodeId node);
  void drop_spills(std::uint32_t most);
  std::size_t count_again(NodeId root, std::size_t most, std::vector<NodeId>& marks, std::vector<NodeId>& leaves) const;

  const DesCircuit& circuit_;
  const Levels& levels_;
  const std::size_t most_levels_;
  std::vector<bool> needed_, at_once_;
  std::vector<std::uint32_t> spills_;
  std::uint32_t spill_count_ = 0;
};

}  // namespace warpcipher::search::cuda
