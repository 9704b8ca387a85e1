// SPDX-License-Identifier: Apache-2.0
// DES as a search computes it: a circuit of three-input gates over words, one key a bit, with no key and no text in it.
// The forward half runs from what goes into the cipher, the backward half from what comes out; a key is right when
// they meet. Every node knows the key bits that it depends on, so that work can be placed in the outermost loop that
// has them all.
//
// Half blocks are numbered as the Feistel network makes them: half 0 is L0, half 1 is R0, half i + 1 is R_i, up to half
// 17 = R16. So half 16 = L16 and
//
//   half[i + 1] = half[i - 1] ^ f(half[i], K_i)      i = 1 ... 16, either way round
//
// Key bits are named by their position in PC-1's output, from 0 to 55.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace warpcipher::search::cuda {

using NodeId = std::uint32_t;

// Tables of gates: bit (a << 2 | b << 1 | c) is the result.
inline constexpr unsigned xor_table = 0x3c;  // a ^ b

// Positions of key bits as a set.
using KeyBits = std::uint64_t;

inline constexpr std::size_t des_key_bits = 56;

struct Node {
  enum class Kind : std::uint8_t {
    input,  // bit `table`, 0 to 63: of IP of the block that goes in (L0 R0); 64 to 127: of the one expected (R16 L16)
    gate,   // the LUT3 `table` of a, b, c
    keyed,  // a ^ the key bit at position `table`
  };
  Kind kind;
  std::uint8_t table;
  NodeId a, b, c;
  KeyBits keys;  // what it depends on
};

// Two nodes that are equal for the right key.
struct Comparison {
  NodeId forward, backward;
};

class DesCircuit {
 public:
  // Every bit of the block expected is known: forward and backward meet at half `meeting`, 2 to 15. comparisons() has
  // 32 pairs, four for each S-box, in the order of the S-boxes.
  DesCircuit(bool decrypt, int meeting);

  // Only the bits with a one in `mask` are (bit i: byte i / 8, bit i % 8 of it): sixteen rounds forward. comparisons()
  // has one pair for each of them.
  DesCircuit(bool decrypt, std::uint64_t mask);

  // One round, whichever: inputs 0 to 31 are the left half, 32 to 63 the right one; a keyed node's `table` is the
  // number of its bit in the subkey, from 0. comparisons()[i] has bit i of the new half, and of the left one that it
  // replaces.
  static DesCircuit one_round();

  bool decrypts() const { return decrypt_; }
  bool meets() const { return meets_; }  // whether there is a backward half

  // Which of the bits expected are known: bit i for input 64 + i.
  std::uint64_t known() const { return known_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Comparison> comparisons() const { return comparisons_; }

  NodeId gate(unsigned table, NodeId a, NodeId b, NodeId c);

 private:
  using Half = std::array<NodeId, 32>;

  DesCircuit() = default;
  NodeId add(const Node& node);
  Half input_half(int first);
  Half add_round(const Half& left, const Half& right, int round);
  template <class Position>
  Half add_round_of(const Half& left, const Half& right, Position&& position);

  bool decrypt_ = false;
  bool meets_ = false;
  std::uint64_t known_ = 0;
  std::vector<Node> nodes_;
  std::vector<Comparison> comparisons_;
};

inline constexpr std::size_t des_inputs = 128;

}  // namespace warpcipher::search::cuda
