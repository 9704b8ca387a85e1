// SPDX-License-Identifier: Apache-2.0
// Where each node of the circuit is computed, and which nodes are kept in shared memory between the loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "search/cuda/des_layout.hpp"

namespace warpcipher::search::cuda {

// How the kernel is written; never changes the result. H200, launches of 2^34 keys, G keys/s, for the template with the
// most gates of 20 random ones:
//
//   this                            205.8 (best bits unknown: 212.3)
//   barriers                        none: 192.6, 2: 206.5, 4: 204.4
//   barriers of a scheduler's three warps only   1: 206.7, 2: 206.3, 4: 205.4, 8: 205.0
//   4 granules, 128 registers       193.7: three operands of a gate often lie in one bank
//   slots 120: 205.9                levels 8: 205.1
//   three S-boxes in the loops, further ones at once where a key passes: 195.0 (best bits: 202.3)
//
// Not done: nodes that depend on the innermost bit, but not on the next ones, could be computed further out for both
// its values. That leaves 1850 to 1990 gates of 1990 to 2080, but needs more shared memory than there is for three
// granules; with two granules the pipe is 79% busy (ncu). By these counts it would gain 2% at best.
//
// ncu: the logic pipe is 84% busy. Of the 4.8 cycles from one instruction of a warp to the next it waits 1.4 for that
// pipe, 1.3 for its turn, 0.6 for the instruction before, 0.3 for operands, 0.06 at the barrier, 0.01 for instructions.
//
// Two-key triple DES with the outer key unknown: 9060 to 9120 gates, of which the known pass is 3504, and no spills. At
// 64 gates for each clock and multiprocessor (132 of them at 1.98 GHz) the bound is 59 G keys/s. Measured: 49.8, so the
// pipe is as busy as for DES, and only fewer gates would be faster.
//
// fold removes 132 of 760 multiply-adds from a turn of the innermost loop, and adds no gate (SASS, sm_90).
struct DesPolicy {
  std::uint32_t granules = 3;  // that a block tests at the same time
  std::uint32_t slots = 148;   // words that a thread may have in shared memory
  std::uint32_t levels = 4;    // innermost loops that have nodes of their own; other nodes: once for each thread
  std::uint32_t barriers = 1;  // in a turn of the innermost loop
  bool multiply = true;        // key bits on the multiply pipe
  bool fold = true;            // add a key bit in the gate that computes a bit, if only one S-box takes the bit
  friend bool operator==(const DesPolicy&, const DesPolicy&) = default;
};

inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};

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

  // The word of shared memory that holds a node for the loops further in, or no_slot.
  std::uint32_t slot(NodeId node) const { return slots_[node]; }
  std::uint32_t slot_count() const { return slot_count_; }

  // A bit of a half block: left ^ (an S-box's output).
  bool is_sum(NodeId node) const;

 private:
  bool is_gate(NodeId node) const { return circuit_.nodes()[node].kind == Node::Kind::gate; }
  bool is_computed(NodeId node) const { return is_gate(node) || circuit_.nodes()[node].kind == Node::Kind::whole; }
  template <class Use>
  void each_source(NodeId node, Use&& use) const;
  void mark(std::span<const Comparison> comparisons, bool backward, std::vector<bool>& marks) const;
  void choose_slots(std::span<const Comparison> compared);
  void take_slot(NodeId node);
  void drop_slots(std::uint32_t most);
  std::size_t count_again(NodeId root, std::size_t most, std::vector<NodeId>& marks, std::vector<NodeId>& leaves) const;

  const DesCircuit& circuit_;
  const Levels& levels_;
  const std::size_t most_levels_;
  std::vector<bool> needed_, at_once_;
  std::vector<std::uint32_t> slots_;
  std::uint32_t slot_count_ = 0;
};

}  // namespace warpcipher::search::cuda
