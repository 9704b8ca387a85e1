// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_layout.hpp"

#include <algorithm>
#include <limits>

namespace warpcipher::search::cuda {

namespace {

// Bits that nearly all warps compare: 12 bits leave 1024 keys of a warp with a chance of 2 in 9 to go on.
constexpr std::size_t first_boxes = 3;
constexpr std::size_t comparisons_of_box = 4;

std::vector<NodeId> roots_of(std::span<const Comparison> comparisons) {
  std::vector<NodeId> roots;
  for (const Comparison& comparison : comparisons) {
    roots.push_back(comparison.forward);
    roots.push_back(comparison.backward);
  }
  return roots;
}

// Gates computed for a turn of the innermost loop, on the average.
double cost(const DesCircuit& circuit, std::span<const NodeId> roots, const Levels& levels) {
  std::vector<bool> needed(circuit.nodes().size());
  mark_needed(circuit, roots, needed);
  double sum = 0;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const Node& node = circuit.nodes()[i];
    if (!needed[i] || node.kind != Node::Kind::gate) continue;
    sum += 1.0 / static_cast<double>(std::uint64_t{1} << levels.of(node.keys));
  }
  return sum;
}

}  // namespace

Levels::Levels(std::span<const std::uint8_t> positions, std::span<const std::uint8_t> loops) {
  for (const std::uint8_t bit : loops) bits_.push_back(KeyBits{1} << positions[bit]);
}

std::size_t Levels::of(KeyBits keys) const {
  std::size_t level = 0;
  while (level < bits_.size() && (keys & bits_[level]) == 0) ++level;
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
    marks[node.a] = marks[node.b] = marks[node.c] = true;
  }
}

DesLayout choose_layout(const DesCircuit& circuit, std::span<const std::uint8_t> positions, const DesShape& shape,
                        std::vector<Comparison>& order) {
  const std::span<const Comparison> comparisons = circuit.comparisons();
  const std::size_t granule_bits = shape.granule_bits();
  const bool by_boxes = comparisons.size() == 32;
  DesLayout layout;
  order.assign(comparisons.begin(), comparisons.end());

  // Each single bit as the innermost loop, with each choice of the S-boxes that are compared first.
  double best = std::numeric_limits<double>::infinity();
  std::array<std::size_t, first_boxes> boxes{};
  for (std::size_t bit = 0; bit < granule_bits; ++bit) {
    const std::uint8_t loop = static_cast<std::uint8_t>(bit);
    const Levels levels(positions, std::span(&loop, 1));
    const auto consider = [&](std::span<const NodeId> roots, const std::array<std::size_t, first_boxes>& chosen) {
      const double sum = cost(circuit, roots, levels);
      if (sum >= best) return;
      best = sum;
      boxes = chosen;
      layout.loops = {loop};
    };
    if (!by_boxes) {
      consider(roots_of(comparisons), {});
      continue;
    }
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t j = i + 1; j < 8; ++j) {
        for (std::size_t k = j + 1; k < 8; ++k) {
          std::vector<NodeId> roots;
          for (const std::size_t box : {i, j, k}) {
            const auto part = roots_of(comparisons.subspan(comparisons_of_box * box, comparisons_of_box));
            roots.insert(roots.end(), part.begin(), part.end());
          }
          consider(roots, {i, j, k});
        }
      }
    }
  }
  if (by_boxes) {
    // These first, then the others; the fourth is the one with the least further work.
    const auto put = [&](std::size_t place, std::size_t box) {
      std::copy_n(comparisons.begin() + static_cast<std::ptrdiff_t>(comparisons_of_box * box), comparisons_of_box,
                  order.begin() + static_cast<std::ptrdiff_t>(comparisons_of_box * place));
    };
    std::vector<std::size_t> rest;
    for (std::size_t box = 0; box < 8; ++box) {
      if (std::find(boxes.begin(), boxes.end(), box) == boxes.end()) rest.push_back(box);
    }
    for (std::size_t place = 0; place < first_boxes; ++place) put(place, boxes[place]);
    const Levels levels(positions, layout.loops);
    std::size_t fourth = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < rest.size(); ++i) {
      put(first_boxes, rest[i]);
      const double sum =
          cost(circuit, roots_of(std::span(order).first(comparisons_of_box * (first_boxes + 1))), levels);
      if (sum >= least) continue;
      least = sum;
      fourth = i;
    }
    std::swap(rest[0], rest[fourth]);
    for (std::size_t i = 0; i < rest.size(); ++i) put(first_boxes + i, rest[i]);
  }

  // The other loops, each the best beside those chosen.
  const std::size_t first = by_boxes ? comparisons_of_box * first_boxes : comparisons.size();
  const std::vector<NodeId> roots = roots_of(std::span(order).first(first));
  while (layout.loops.size() < shape.loop_bits) {
    best = std::numeric_limits<double>::infinity();
    std::uint8_t chosen = 0;
    for (std::uint8_t bit = 0; bit < granule_bits; ++bit) {
      if (std::find(layout.loops.begin(), layout.loops.end(), bit) != layout.loops.end()) continue;
      layout.loops.push_back(bit);
      const double sum = cost(circuit, roots, Levels(positions, layout.loops));
      layout.loops.pop_back();
      if (sum >= best) continue;
      best = sum;
      chosen = bit;
    }
    layout.loops.push_back(chosen);
  }

  // Lanes: bits that the innermost loop uses least, for adding them takes the pipe of the gates.
  std::vector<bool> needed(circuit.nodes().size());
  mark_needed(circuit, roots, needed);
  const Levels levels(positions, layout.loops);
  std::array<std::size_t, des_key_bits> uses{};
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
