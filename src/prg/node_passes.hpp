// SPDX-License-Identifier: Apache-2.0
// Nodes of point functions for a generator that only expands seeds: control bits are taken out before, and corrections
// added after. All of it is in an unnamed namespace, for the reason that cipher/simd/128.hpp gives.
#pragma once

#include <algorithm>
#include <cstring>

#include "prg/lanes.hpp"

namespace warpcipher::prg {
namespace {

struct NodeWords {
  std::uint64_t low, high;
};

inline NodeWords load_node(const std::uint8_t* p) {
  NodeWords words;
  std::memcpy(&words, p, sizeof words);
  return words;
}

// Calls expand(seeds, n, out) and then add(out block of node i, number of the block, mask of node i) for some nodes at
// a time. `whole`: the control bit stays in the seed, else root_bit takes its place.
template <class Expand, class Add>
void pass_nodes(const std::uint8_t* nodes, std::size_t count, std::size_t per_node, bool whole, std::uint8_t root_bit,
                std::uint8_t* out, const Expand& expand, const Add& add) {
  constexpr std::size_t most = 64;
  std::uint8_t seeds[block_len * most];
  std::uint64_t masks[most];
  for (; count != 0;) {
    const std::size_t n = std::min(count, most);
    for (std::size_t i = 0; i < n; ++i) {
      NodeWords node = load_node(nodes + block_len * i);
      masks[i] = 0 - (node.low & 1);
      if (!whole) node.low = (node.low & ~std::uint64_t{1}) | root_bit;
      std::memcpy(seeds + block_len * i, &node, block_len);
    }
    expand(seeds, n, out);
    for (std::size_t i = 0; i < per_node * n; ++i) {
      NodeWords made = load_node(out + block_len * i);
      add(made, i % per_node, masks[i / per_node]);
      std::memcpy(out + block_len * i, &made, block_len);
    }
    nodes += block_len * n;
    out += per_node * block_len * n;
    count -= n;
  }
  std::memset(seeds, 0, sizeof seeds);
  __asm__ __volatile__("" : : "r"(seeds) : "memory");
}

// Both integers of 32 bits of a word.
inline std::uint64_t add_halves(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t low = (a + b) & 0xffffffff;
  return low | ((a >> 32) + (b >> 32)) << 32;
}

inline std::uint64_t add_value(std::uint64_t a, std::uint64_t b, Group group, bool negative) {
  if (group == Group::gf2) return a ^ b;
  if (group == Group::u64) return negative ? 0 - (a + b) : a + b;
  const std::uint64_t sum = add_halves(a, b);
  return negative ? add_halves(~sum, 0x0000000100000001) : sum;
}

template <auto Expand>
constexpr Code code_by_passes{
    Expand,
    [](Generator generator, const std::uint8_t* nodes, std::size_t count, const LevelCorrection& correction,
       std::uint8_t* out) {
      const NodeWords added[2] = {load_node(correction.children[0]), load_node(correction.children[1])};
      pass_nodes(
          nodes, count, 2, is_correlated(generator), correction.root_bit, out,
          [&](const std::uint8_t* seeds, std::size_t n, std::uint8_t* to) { Expand(generator, seeds, n, 0, 2, to); },
          [&](NodeWords& made, std::size_t child, std::uint64_t mask) {
            made.low ^= added[child].low & mask;
            made.high ^= added[child].high & mask;
          });
    },
    [](Generator generator, const std::uint8_t* nodes, std::size_t count, const LeafCorrection& correction,
       std::uint8_t* out) {
      const NodeWords added[most_blocks] = {load_node(correction.blocks[0]), load_node(correction.blocks[1])};
      const int blocks = is_correlated(generator) ? 2 : 1;
      pass_nodes(
          nodes, count, static_cast<std::size_t>(blocks), false, correction.root_bit, out,
          [&](const std::uint8_t* seeds, std::size_t n, std::uint8_t* to) {
            Expand(generator, seeds, n, 2, blocks, to);
          },
          [&](NodeWords& made, std::size_t block, std::uint64_t mask) {
            made.low = add_value(made.low, added[block].low & mask, correction.group, correction.negative);
            made.high = add_value(made.high, added[block].high & mask, correction.group, correction.negative);
          });
    }};

}  // namespace
}  // namespace warpcipher::prg
