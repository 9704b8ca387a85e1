// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_layout.hpp"

#include <algorithm>

#include "search/cuda/des_known_pass.hpp"

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

}  // namespace warpcipher::search::cuda
