// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_placement.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace warpcipher::search::cuda {

namespace {

// A slot is not given up for more gates than these, but where there is no other way.
constexpr std::size_t most_gates_again = 12;

}  // namespace

DesPlacement::DesPlacement(const DesCircuit& circuit, std::span<const Comparison> compared, const Levels& levels,
                           const DesPolicy& policy)
    : circuit_(circuit),
      levels_(levels),
      most_levels_(policy.levels),
      needed_(circuit.nodes().size()),
      at_once_(circuit.nodes().size()),
      slots_(circuit.nodes().size(), no_slot) {
  mark(compared, true, needed_);
  mark(compared, false, at_once_);
  choose_slots(compared);
  drop_slots(policy.slots);
  find_only_uses();
}

std::size_t DesPlacement::level_of(NodeId node) const {
  const std::size_t level = levels_.of(circuit_.nodes()[node].keys);
  return level + 1 < levels_.count() ? std::min(level, most_levels_) : level;
}

bool DesPlacement::at_once(NodeId node) const {
  if (!is_gate(node) && slots_[node] == no_slot) return false;
  return level_of(node) == 0 ? at_once_[node] : needed_[node];
}

bool DesPlacement::is_sum(NodeId node) const {
  const Node& source = circuit_.nodes()[node];
  return source.kind == Node::Kind::gate && source.table == xor_table && source.a == source.c;
}

void DesPlacement::mark(std::span<const Comparison> comparisons, bool backward, std::vector<bool>& marks) const {
  std::vector<NodeId> roots;
  for (const Comparison& comparison : comparisons) {
    roots.push_back(comparison.forward);
    if (backward) roots.push_back(comparison.backward);
  }
  mark_needed(circuit_, roots, marks);
}

void DesPlacement::take_slot(NodeId node) {
  if (slots_[node] == no_slot) slots_[node] = slot_count_++;
}

// The nodes that are read in a loop further in than the one that computes them. A key bit is added anew where the node
// that it is added to has a slot anyway.
void DesPlacement::choose_slots(std::span<const Comparison> compared) {
  std::vector<NodeId> keyed;
  const auto read = [&](NodeId node, std::size_t level) {
    const Node& source = circuit_.nodes()[node];
    if (source.kind == Node::Kind::keyed) {
      if (level_of(node) > level)
        keyed.push_back(node);
      else if (is_gate(source.a) && level_of(source.a) > level)
        take_slot(source.a);
    } else if (source.kind == Node::Kind::gate && level_of(node) > level) {
      take_slot(node);
    }
  };
  for (NodeId node = 0; node < needed_.size(); ++node) {
    if (!needed_[node] || !is_gate(node)) continue;
    const Node& gate = circuit_.nodes()[node];
    for (const NodeId source : {gate.a, gate.b, gate.c}) read(source, level_of(node));
  }
  for (const Comparison& comparison : compared) {
    read(comparison.forward, 0);
    read(comparison.backward, 0);
  }
  for (const NodeId node : keyed) {
    const NodeId base = circuit_.nodes()[node].a;
    if (is_gate(base) && slots_[base] == no_slot) take_slot(node);
  }
}

// Gives up the slots of nodes that cost the fewest gates to compute again from other slots.
void DesPlacement::drop_slots(std::uint32_t most) {
  std::vector<std::size_t> reader(needed_.size(), levels_.count());  // the innermost level that reads a slot
  for (NodeId node = 0; node < needed_.size(); ++node) {
    const Node& gate = circuit_.nodes()[node];
    if (!needed_[node] || !is_gate(node)) continue;
    for (const NodeId source : {gate.a, gate.b, gate.c}) {
      reader[source] = std::min(reader[source], level_of(node));
      if (circuit_.nodes()[source].kind != Node::Kind::keyed) continue;
      const NodeId base = circuit_.nodes()[source].a;
      reader[base] = std::min(reader[base], level_of(node));
    }
  }
  std::vector<NodeId> kept;
  for (NodeId node = 0; node < needed_.size(); ++node) {
    if (slots_[node] != no_slot) kept.push_back(node);
  }
  std::size_t most_gates = most_gates_again;
  while (kept.size() > most) {
    std::size_t best = kept.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      std::vector<NodeId> cone;
      if (!is_gate(kept[i]) || !collect(kept[i], true, most_gates, cone)) continue;
      const double cost = static_cast<double>(cone.size()) / static_cast<double>(std::uint64_t{1} << reader[kept[i]]);
      if (cost >= least) continue;
      least = cost;
      best = i;
    }
    if (best == kept.size()) {
      if (most_gates > needed_.size()) break;  // what is left is nodes with a key bit each: less than any device has
      most_gates *= 2;
      continue;
    }
    slots_[kept[best]] = no_slot;
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(best));
  }
  slot_count_ = 0;
  for (const NodeId node : kept) slots_[node] = slot_count_++;
}

// The gates that give a node from slots and inputs; false when they are too many.
bool DesPlacement::collect(NodeId node, bool root, std::size_t most, std::vector<NodeId>& cone) const {
  const Node& source = circuit_.nodes()[node];
  if (source.kind == Node::Kind::input || (!root && slots_[node] != no_slot)) return true;
  if (source.kind == Node::Kind::keyed) return collect(source.a, false, most, cone);
  if (std::find(cone.begin(), cone.end(), node) != cone.end()) return true;
  if (cone.size() >= most) return false;
  cone.push_back(node);
  return collect(source.a, false, most, cone) && collect(source.b, false, most, cone) &&
         collect(source.c, false, most, cone);
}

void DesPlacement::find_only_uses() {
  const auto count = static_cast<NodeId>(needed_.size());
  only_use_.resize(count);
  for (NodeId node = 0; node < count; ++node) only_use_[node] = node;
  std::vector<bool> several(count);
  for (NodeId node = 0; node < count; ++node) {
    const Node& source = circuit_.nodes()[node];
    if (source.kind != Node::Kind::keyed || !at_once_[node]) continue;
    if (!is_sum(source.a) || level_of(source.a) != 0 || several[source.a]) continue;
    several[source.a] = only_use_[source.a] != source.a;
    only_use_[source.a] = several[source.a] ? source.a : node;
  }
}

}  // namespace warpcipher::search::cuda
