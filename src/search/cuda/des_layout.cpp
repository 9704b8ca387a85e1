// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "search/cuda/des_masks.hpp"

namespace warpcipher::search::cuda {
namespace {

constexpr std::size_t comparisons_of_box = 4;
constexpr std::size_t compared_boxes = loop_comparisons / comparisons_of_box;
static_assert(compared_boxes == 2, "they are chosen as pairs");

std::vector<NodeId> roots_of(std::span<const Comparison> comparisons) {
  std::vector<NodeId> roots;
  for (const Comparison& comparison : comparisons) {
    roots.push_back(comparison.forward);
    roots.push_back(comparison.backward);
  }
  return roots;
}

// The number of gates that depend on each set of key bits.
struct GateCount {
  KeyBits keys;
  double gates;
};

std::vector<GateCount> count_gates(const DesCircuit& circuit, std::span<const NodeId> roots) {
  std::vector<bool> needed(circuit.nodes().size());
  mark_needed(circuit, roots, needed);
  std::vector<KeyBits> keys;
  std::vector<bool> counted(circuit.whole_passes().size());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const Node& node = circuit.nodes()[i];
    if (needed[i] && node.kind == Node::Kind::gate) keys.push_back(node.keys);
    if (!needed[i] || node.kind != Node::Kind::whole || counted[node.a]) continue;
    counted[node.a] = true;
    keys.insert(keys.end(), known_pass_gates(), node.keys);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<GateCount> counts;
  for (const KeyBits& set : keys) {
    if (counts.empty() || counts.back().keys != set) counts.push_back({set, 0});
    counts.back().gates += 1;
  }
  return counts;
}

// The average number of gates in a turn of the innermost loop.
double cost(std::span<const GateCount> counts, const Levels& levels) {
  double sum = 0;
  for (const GateCount& count : counts) {
    sum += count.gates / static_cast<double>(std::uint64_t{1} << levels.of(count.keys));
  }
  return sum;
}

// A choice: the compared bits, and the loops from the innermost on.
struct Choice {
  double cost;
  std::size_t set;  // of comparisons
  std::vector<std::uint8_t> loops;
};

// The choices to extend. The best choice for one loop is not always part of the best for more loops.
constexpr std::size_t kept_choices = 32;
constexpr std::size_t chosen_together = 4;  // loops; further out, choosing one after another is good enough

void keep_best(std::vector<Choice>& choices, std::size_t count) {
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.cost < b.cost; });
  if (choices.size() > count) choices.resize(count);
}

// Extends each choice by each bit as the next loop.
std::vector<Choice> extend(std::span<const Choice> choices, std::span<const std::vector<GateCount>> counts,
                           std::span<const std::uint8_t> positions, std::size_t bits) {
  std::vector<Choice> longer;
  for (const Choice& choice : choices) {
    for (std::uint8_t bit = 0; bit < static_cast<std::uint8_t>(bits); ++bit) {
      if (std::find(choice.loops.begin(), choice.loops.end(), bit) != choice.loops.end()) continue;
      Choice next = choice;
      next.loops.push_back(bit);
      next.cost = cost(counts[choice.set], Levels(positions, next.loops));
      longer.push_back(std::move(next));
    }
  }
  return longer;
}

}  // namespace

Levels::Levels(std::span<const std::uint8_t> positions, std::span<const std::uint8_t> loops) {
  for (const std::uint8_t bit : loops) positions_.push_back(positions[bit]);
}

std::size_t Levels::of(const KeyBits& keys) const {
  std::size_t level = 0;
  while (level < positions_.size() && !keys.has(positions_[level])) ++level;
  return level;
}

void mark_needed(const DesCircuit& circuit, std::span<const NodeId> roots, std::vector<bool>& marks) {
  std::size_t top = 0;
  for (const NodeId root : roots) {
    marks[root] = true;
    top = std::max<std::size_t>(top, root);
  }
  for (std::size_t i = top + 1; i-- > 0;) {
    const Node& node = circuit.nodes()[i];
    if (!marks[i] || node.kind == Node::Kind::input) continue;
    if (node.kind == Node::Kind::whole) {
      for (const NodeId from : circuit.whole_passes()[node.a].from) marks[from] = true;
      continue;
    }
    marks[node.a] = marks[node.b] = marks[node.c] = true;
  }
}

DesLayout choose_layout(const DesCircuit& circuit, std::span<const std::uint8_t> positions, const DesShape& shape,
                        std::vector<Comparison>& compared) {
  const std::span<const Comparison> comparisons = circuit.comparisons();
  const std::size_t granule_bits = shape.granule_bits();

  // Sets of comparisons to choose from: two S-boxes where the halves meet.
  std::vector<std::vector<Comparison>> sets;
  const auto part_of = [&](std::size_t box) {
    return comparisons.subspan(comparisons_of_box * box, comparisons_of_box);
  };
  if (circuit.meets()) {
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t j = i + 1; j < 8; ++j) {
        auto& set = sets.emplace_back(part_of(i).begin(), part_of(i).end());
        set.insert(set.end(), part_of(j).begin(), part_of(j).end());
      }
    }
  } else {
    sets.emplace_back(comparisons.begin(), comparisons.begin() + loop_comparisons);
  }

  // Chooses the loops and the set together.
  std::vector<std::vector<GateCount>> counts;
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    counts.push_back(count_gates(circuit, roots_of(sets[i])));
    choices.push_back({0, i, {}});
  }
  for (std::size_t loop = 0; loop < shape.loop_bits; ++loop) {
    choices = extend(choices, counts, positions, granule_bits);
    keep_best(choices, loop + 1 < chosen_together ? kept_choices : 1);
  }
  DesLayout layout;
  layout.loops = choices.front().loops;
  layout.cost = choices.front().cost;
  compared = sets[choices.front().set];
  const std::vector<NodeId> roots = roots_of(compared);

  // Lanes: the bits that the innermost loop uses least, because adding a lane's bit uses the pipe of the gates.
  std::vector<bool> needed(circuit.nodes().size());
  mark_needed(circuit, roots, needed);
  const Levels levels(positions, layout.loops);
  std::array<std::size_t, most_key_bits> uses{};
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const Node& node = circuit.nodes()[i];
    if (needed[i] && node.kind == Node::Kind::keyed && levels.of(node.keys) == 0) ++uses[node.table];
  }
  std::vector<std::uint8_t> others;
  for (std::uint8_t bit = 0; bit < granule_bits; ++bit) {
    if (std::find(layout.loops.begin(), layout.loops.end(), bit) == layout.loops.end()) others.push_back(bit);
  }
  std::stable_sort(others.begin(), others.end(),
                   [&](std::uint8_t a, std::uint8_t b) { return uses[positions[a]] < uses[positions[b]]; });
  layout.lanes.assign(others.begin(), others.begin() + lane_bits);
  layout.threads.assign(others.begin() + lane_bits, others.end());
  for (std::size_t bit = granule_bits; bit < std::min(positions.size(), shape.launch_bits()); ++bit) {
    layout.blocks.push_back(static_cast<std::uint8_t>(bit));
  }
  return layout;
}

namespace {

// A node is computed again, rather than spilled, by more gates than these only as the last resort.
constexpr std::size_t most_gates_again = 12;

}  // namespace

DesPlacement::DesPlacement(const DesCircuit& circuit, std::span<const Comparison> compared, const Levels& levels,
                           const DesPolicy& policy)
    : circuit_(circuit),
      levels_(levels),
      most_levels_(policy.levels),
      needed_(circuit.nodes().size()),
      at_once_(circuit.nodes().size()),
      spills_(circuit.nodes().size(), no_spill) {
  mark(compared, true, needed_);
  mark(compared, false, at_once_);
  choose_spills(compared);
  drop_spills(policy.spills);
}

std::size_t DesPlacement::level_of(NodeId node) const {
  const std::size_t level = levels_.of(circuit_.nodes()[node].keys);
  return level + 1 < levels_.count() ? std::min(level, most_levels_) : level;
}

bool DesPlacement::at_once(NodeId node) const {
  if (!is_computed(node) && spills_[node] == no_spill) return false;
  return level_of(node) == 0 ? at_once_[node] : needed_[node];
}

bool DesPlacement::is_sum(NodeId node) const {
  const Node& source = circuit_.nodes()[node];
  return source.kind == Node::Kind::gate && source.table == xor_table && source.a == source.c;
}

// The operands of a gate or a known pass.
template <class Use>
void DesPlacement::each_source(NodeId node, Use&& use) const {
  const Node& computed = circuit_.nodes()[node];
  if (computed.kind == Node::Kind::whole) {
    for (const NodeId source : circuit_.whole_passes()[computed.a].from) use(source);
  } else {
    for (const NodeId source : {computed.a, computed.b, computed.c}) use(source);
  }
}

void DesPlacement::mark(std::span<const Comparison> comparisons, bool backward, std::vector<bool>& marks) const {
  std::vector<NodeId> roots;
  for (const Comparison& comparison : comparisons) {
    roots.push_back(comparison.forward);
    if (backward) roots.push_back(comparison.backward);
  }
  mark_needed(circuit_, roots, marks);
}

void DesPlacement::add_spill(NodeId node) {
  if (spills_[node] == no_spill) spills_[node] = spill_count_++;
}

// The nodes that are read in a loop further in than the one that computes them are spilled. A keyed node is not if its
// base is: the key bit is added again. The base must be if the key bit belongs to a loop further in: otherwise the base
// would be computed again there, which is not possible for a known pass.
void DesPlacement::choose_spills(std::span<const Comparison> compared) {
  std::vector<NodeId> keyed;
  const auto read = [&](NodeId node, std::size_t level) {
    const Node& source = circuit_.nodes()[node];
    if (source.kind == Node::Kind::keyed) {
      if (level_of(node) > level && level_of(node) == level_of(source.a))
        keyed.push_back(node);
      else if (is_computed(source.a) && level_of(source.a) > level)
        add_spill(source.a);
    } else if (is_computed(node) && level_of(node) > level) {
      add_spill(node);
    }
  };
  for (NodeId node = 0; node < needed_.size(); ++node) {
    if (!needed_[node] || !is_computed(node)) continue;
    each_source(node, [&](NodeId source) { read(source, level_of(node)); });
  }
  for (const Comparison& comparison : compared) {
    read(comparison.forward, 0);
    read(comparison.backward, 0);
  }
  for (const NodeId node : keyed) {
    const NodeId base = circuit_.nodes()[node].a;
    if (is_computed(base) && spills_[base] == no_spill) add_spill(node);
  }
}

// Gives up the spills of the nodes that need the fewest gates to be computed again (rematerialized) from other spills.
void DesPlacement::drop_spills(std::uint32_t most) {
  std::vector<std::size_t> reader(needed_.size(), levels_.count());  // the innermost level that reads a node
  for (NodeId node = 0; node < needed_.size(); ++node) {
    if (!needed_[node] || !is_computed(node)) continue;
    each_source(node, [&](NodeId source) {
      reader[source] = std::min(reader[source], level_of(node));
      if (circuit_.nodes()[source].kind != Node::Kind::keyed) return;
      const NodeId base = circuit_.nodes()[source].a;
      reader[base] = std::min(reader[base], level_of(node));
    });
  }
  struct Kept {
    NodeId node;
    bool measured = false;
    double cost = 0;
    std::vector<NodeId> leaves;  // its inputs if it were computed again
  };
  std::vector<Kept> kept;
  for (NodeId node = 0; node < needed_.size(); ++node) {
    if (spills_[node] != no_spill) kept.push_back({node, false, 0, {}});
  }
  std::vector<NodeId> marks(needed_.size());
  std::size_t most_gates = most_gates_again;
  while (kept.size() > most) {
    auto best = kept.end();
    for (auto spill = kept.begin(); spill != kept.end(); ++spill) {
      if (!spill->measured) {
        const std::size_t gates = count_again(spill->node, most_gates, marks, spill->leaves);
        spill->cost = gates == 0 ? std::numeric_limits<double>::infinity()
                                 : std::ldexp(static_cast<double>(gates), -static_cast<int>(reader[spill->node]));
        spill->measured = true;
      }
      if (spill->cost < (best == kept.end() ? std::numeric_limits<double>::infinity() : best->cost)) best = spill;
    }
    if (best == kept.end()) {
      if (most_gates > needed_.size()) break;  // only nodes with one key bit are left
      most_gates *= 2;
      for (Kept& spill : kept) spill.measured = false;
      continue;
    }
    const NodeId dropped = best->node;
    spills_[dropped] = no_spill;
    kept.erase(best);
    for (Kept& spill : kept) {
      if (std::find(spill.leaves.begin(), spill.leaves.end(), dropped) != spill.leaves.end()) spill.measured = false;
    }
  }
  spill_count_ = 0;
  for (const Kept& spill : kept) spills_[spill.node] = spill_count_++;
}

// The number of gates that compute a node from spills and inputs; 0 if they are too many, or none is possible. leaves:
// gets those spills. marks: the last visitor of each node.
std::size_t DesPlacement::count_again(NodeId root, std::size_t most, std::vector<NodeId>& marks,
                                      std::vector<NodeId>& leaves) const {
  leaves.clear();
  if (!is_gate(root)) return 0;
  std::size_t gates = 0;
  std::vector<NodeId> rest{root};
  std::vector<NodeId> seen;
  while (!rest.empty() && gates <= most) {
    const NodeId node = rest.back();
    rest.pop_back();
    if (std::exchange(marks[node], root + 1) == root + 1) continue;
    seen.push_back(node);
    const Node& source = circuit_.nodes()[node];
    if (source.kind == Node::Kind::input) continue;
    if (node != root && spills_[node] != no_spill) {
      leaves.push_back(node);
    } else if (source.kind == Node::Kind::keyed) {
      rest.push_back(source.a);
    } else if (source.kind == Node::Kind::whole) {
      gates = most + 1;  // a known pass is not run again for one bit
    } else {
      ++gates;
      rest.insert(rest.end(), {source.a, source.b, source.c});
    }
  }
  for (const NodeId node : seen) marks[node] = 0;
  return gates <= most ? gates : 0;
}

}  // namespace warpcipher::search::cuda
