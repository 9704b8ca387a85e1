// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_circuit.hpp"

#include <utility>

#include "cipher/circuits.hpp"
#include "cipher/des.hpp"
#include "cipher/des_bitslice.hpp"

namespace warpcipher::search::cuda {
namespace {

// A word type for the S-boxes of cipher/circuits.hpp that records their gates instead of computing them.
struct Signal {
  DesCircuit* circuit = nullptr;
  NodeId node = 0;
};

template <unsigned Table>
Signal lut3(const Signal& a, const Signal& b, const Signal& c) {
  return {a.circuit, a.circuit->gate(Table, a.node, b.node, c.node)};
}

template <std::size_t... Box>
constexpr auto make_sboxes(std::index_sequence<Box...>) {
  using Apply = void (*)(const Signal(&)[6], Signal(&)[4]);
  return std::array<Apply, 8>{&circuits::run<circuits::DesSbox<static_cast<int>(Box) + 1>, Signal, 6, 4>...};
}

constexpr std::array sboxes = make_sboxes(std::make_index_sequence<8>{});

// Its halves 0 and 1 are halves 17 and 16 of the pass before; its halves 17 and 16 are halves 0 and 1 of the next pass.
DesPass inverse(DesPass pass) {
  pass.backwards = !pass.backwards;
  return pass;
}

}  // namespace

NodeId DesCircuit::add(const Node& node) {
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId DesCircuit::gate(unsigned table, NodeId a, NodeId b, NodeId c) {
  return add(
      {Node::Kind::gate, static_cast<std::uint8_t>(table), a, b, c, nodes_[a].keys | nodes_[b].keys | nodes_[c].keys});
}

DesCircuit::Half DesCircuit::input_half(int first) {
  Half half;
  for (std::size_t i = 0; i < 32; ++i) {
    half[i] = add({Node::Kind::input, static_cast<std::uint8_t>(static_cast<std::size_t>(first) + i), 0, 0, 0, {}});
  }
  return half;
}

// left ^ f(right, K), where bit n of K is the key bit at position(n).
template <class Position>
DesCircuit::Half DesCircuit::add_round_of(const Half& left, const Half& right, Position&& position_of) {
  Half result;
  for (std::size_t box = 0; box < 8; ++box) {
    Signal in[6];
    for (std::size_t i = 0; i < 6; ++i) {
      const NodeId source = right[des::expansion[6 * box + i] - 1u];
      const std::uint8_t position = position_of(6 * box + i);
      const KeyBits keys = nodes_[source].keys | KeyBits(position);
      in[i] = {this, add({Node::Kind::keyed, position, source, source, source, keys})};
    }
    Signal out[4];
    sboxes[box](in, out);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto to = static_cast<std::size_t>(des::bitslice::detail::destination(4 * box + i));
      result[to] = gate(xor_table, left[to], out[i].node, left[to]);
    }
  }
  return result;
}

// Round from 1.
DesCircuit::Half DesCircuit::add_round(const Half& left, const Half& right, const DesPass& pass, int round) {
  const auto subkey = static_cast<std::size_t>(pass.backwards ? 16 - round : round - 1);
  return add_round_of(left, right, [&](std::size_t n) {
    const std::size_t position = des::bitslice::subkey_positions[des::bitslice::subkey_bits * subkey + n];
    return static_cast<std::uint8_t>(des_key_bits * pass.key + position);
  });
}

// The first rounds of a pass: replaces the halves `left` and `right` by those after these rounds.
void DesCircuit::add_rounds(Half& left, Half& right, const DesPass& pass, int count) {
  for (int round = 1; round <= count; ++round) {
    const Half next = add_round(left, right, pass, round);
    left = right;
    right = next;
  }
}

// All rounds of a pass: replaces the halves `left` and `right` by halves 0 and 1 of the next pass.
void DesCircuit::add_pass(Half& left, Half& right, const DesPass& pass) {
  if (!pass.known) {
    add_rounds(left, right, pass, 16);
    std::swap(left, right);
    return;
  }
  WholePass whole{pass, {}};
  KeyBits keys;
  for (std::size_t i = 0; i < 64; ++i) {
    whole.from[i] = i < 32 ? left[i] : right[i - 32];
    keys = keys | nodes_[whole.from[i]].keys;
  }
  const auto number = static_cast<NodeId>(whole_passes_.size());
  for (std::size_t i = 0; i < 64; ++i) {
    (i < 32 ? left[i] : right[i - 32]) =
        add({Node::Kind::whole, static_cast<std::uint8_t>(i), number, number, number, keys});
  }
  whole_passes_.push_back(whole);
}

DesCircuit DesCircuit::one_round() {
  DesCircuit circuit;
  const Half left = circuit.input_half(0);
  const Half right = circuit.input_half(32);
  const Half next = circuit.add_round_of(left, right, [](std::size_t n) { return static_cast<std::uint8_t>(n); });
  for (std::size_t i = 0; i < 32; ++i) circuit.comparisons_.push_back({next[i], left[i]});
  return circuit;
}

DesCircuit::DesCircuit(std::span<const DesPass> passes, const Meeting& meeting)
    : passes_(passes.begin(), passes.end()), meets_(true), known_(~std::uint64_t{0}) {
  Half left = input_half(0);
  Half right = input_half(32);
  Half later = input_half(64);  // half 17, R16
  Half earlier = input_half(96);
  const DesPass& last = passes[meeting.pass];
  for (std::size_t i = passes.size() - 1; i > meeting.pass; --i) add_pass(later, earlier, inverse(passes[i]));
  add_rounds(later, earlier, inverse(last), 16 - meeting.half);
  for (const DesPass& pass : passes.first(meeting.pass)) add_pass(left, right, pass);
  add_rounds(left, right, last, meeting.half - 1);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto to = static_cast<std::size_t>(des::bitslice::detail::destination(i));
    comparisons_.push_back({right[to], earlier[to]});
  }
}

DesCircuit::DesCircuit(std::span<const DesPass> passes, std::uint64_t mask) : passes_(passes.begin(), passes.end()) {
  Half left = input_half(0);
  Half right = input_half(32);
  const Half expected_right = input_half(64);
  const Half expected_left = input_half(96);
  for (const DesPass& pass : passes) add_pass(left, right, pass);
  std::swap(left, right);
  for (std::size_t i = 0; i < 32; ++i) {  // R16 comes first: IP makes it the left half of a ciphertext
    const auto compare = [&](std::size_t bit, const Half& half, const Half& expected, std::size_t at) {
      const int plane = des::bitslice::plane_of_bit(des::initial_permutation[bit]);
      if ((mask >> plane & 1u) == 0) return;
      comparisons_.push_back({half[at], expected[at]});
      known_ |= std::uint64_t{1} << bit;
    };
    const auto at = static_cast<std::size_t>(des::bitslice::detail::destination(i));
    compare(at, right, expected_right, at);
    compare(32 + at, left, expected_left, at);
  }
}

}  // namespace warpcipher::search::cuda
