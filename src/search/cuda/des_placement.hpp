// SPDX-License-Identifier: Apache-2.0
// Where each node of the circuit is computed, and which of them lie in shared memory between the loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "search/cuda/des_layout.hpp"

namespace warpcipher::search::cuda {

// How the kernel is written; never changes the result. H200, all 56 bits unknown, G keys/s:
//
//   barriers, 3 granules            300 gates apart: 194.8, 1000: 198.5, 2000 (one a turn): 200.4; each second turn:
//                                   199.0, each fourth: 198.8, each eighth: 191.9
//   4 granules, 128 registers       180.3: more slots given up, three operands of a gate often in one bank
//   16 bits compared at first       196.8, where 12 are
//   loops 7: 198.0, 9: 196.1        slots 130: 193.9        fold off: 196.4
//   levels 2: 195.8, 3: 198.8, 4: 199.2 (without spilled registers)
//
// Fewer gates alone gain little from here on: with all slots that could be used (those that are the same in a warp's
// threads kept once) 2163 gates a turn took as long as 2190. What helps is that warps stay closer together: where none
// may be more than 300 gates ahead of another, the full key runs at 203 to 208 G keys/s, but other templates at 195 to
// 202.
//
// Launches of 2^34 keys alone, without fold: no barriers 148; 2, 3, 4 blocks of 1 granule, no barriers, 129, 116, 115;
// key bits on the logic pipe 183 where on the multiply pipe 193.
//
// fold takes 132 of 760 multiply-adds off a turn of the innermost loop, and adds no gate (SASS, sm_90).
struct DesPolicy {
  std::uint32_t granules = 3;  // that a block works on, side by side
  std::uint32_t slots = 148;   // words that a thread may have in shared memory
  std::uint32_t levels = 4;    // loops, from the innermost, that have work of their own; further out: once a thread
  std::uint32_t barriers = 1;  // in a turn of the innermost loop
  bool multiply = true;        // key bits on the multiply pipe
  bool fold = true;            // key bits in the gate that makes a bit of a half, where one S-box takes it
  friend bool operator==(const DesPolicy&, const DesPolicy&) = default;
};

// Comparisons after which a warp looks whether any of its keys is left. 12 bits leave one of its 1024 keys with a
// chance of 2 in 9, 16 bits with 1 in 64, 20 bits with 1 in 1000.
inline constexpr std::size_t first_stage = 12;
inline constexpr std::size_t second_stage = 16;
inline constexpr std::size_t third_stage = 20;

inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};

class DesPlacement {
 public:
  DesPlacement(const DesCircuit& circuit, std::span<const Comparison> order, const Levels& levels,
               const DesPolicy& policy);

  std::size_t level_count() const { return levels_.count(); }

  // The loop that computes a node: 0 the innermost, level_count() - 1 outside of all.
  std::size_t level_of(NodeId node) const;

  // Computed in its loop, whatever comes. In the innermost, that is what the first stage takes from the forward half
  // and what goes into the S-boxes that the second stage adds; the rest is computed where it is asked for.
  bool at_once(NodeId node) const;

  // The word of shared memory that holds a node for the loops further in, or no_slot.
  std::uint32_t slot(NodeId node) const { return slots_[node]; }
  std::uint32_t slot_count() const { return slot_count_; }

  // A bit of a half block: left ^ (an S-box's output).
  bool is_sum(NodeId node) const;

  // The one keyed node that takes a sum of the innermost loop, or the node itself where there is none or are several.
  NodeId only_use(NodeId node) const { return only_use_[node]; }

 private:
  bool is_gate(NodeId node) const { return circuit_.nodes()[node].kind == Node::Kind::gate; }
  void mark(std::span<const Comparison> comparisons, bool backward, std::vector<bool>& marks) const;
  void mark_inputs(std::span<const Comparison> comparisons, std::vector<bool>& marks) const;
  void choose_slots(std::span<const Comparison> order);
  void take_slot(NodeId node);
  void drop_slots(std::uint32_t most);
  bool collect(NodeId node, bool root, std::vector<NodeId>& cone) const;
  void find_only_uses();

  const DesCircuit& circuit_;
  const Levels& levels_;
  const std::size_t most_levels_;
  std::vector<bool> needed_, at_once_;
  std::vector<std::uint32_t> slots_;
  std::vector<NodeId> only_use_;
  std::uint32_t slot_count_ = 0;
};

}  // namespace warpcipher::search::cuda
