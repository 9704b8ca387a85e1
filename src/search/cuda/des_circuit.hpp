// SPDX-License-Identifier: Apache-2.0
// DES and triple DES as a search computes them: a circuit of three-input gates over words with one key in each bit,
// without key and text. The forward half starts at the input block, the backward half at the output block; for the
// right key they are equal where they meet. Every node knows the key bits that it depends on, so that it can be
// computed in the outermost loop that has all of them.
//
// Half blocks of a pass are numbered as the Feistel network makes them: half 0 is L0, half 1 is R0, half i + 1 is R_i,
// up to half 17 = R16. So half 16 = L16 and
//
//   half[i + 1] = half[i - 1] ^ f(half[i], K_i)      i = 1 ... 16, either way round
//
// From one pass to the next FP and IP cancel, and only the exchange of the halves is left: half 17 is half 0 of the
// next pass, half 16 is its half 1.
//
// Key bits are named by their position in PC-1's output, from 0 to 55, bits of the second key from 56 on, and so on.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace warpcipher::search::cuda {

using NodeId = std::uint32_t;

// Tables of gates: bit (a << 2 | b << 1 | c) is the result.
inline constexpr unsigned xor_table = 0x3c;  // a ^ b

inline constexpr std::size_t des_key_bits = 56;
inline constexpr std::size_t most_des_keys = 3;
inline constexpr std::size_t most_key_bits = most_des_keys * des_key_bits;

// Positions of key bits as a set.
class KeyBits {
 public:
  KeyBits() = default;
  explicit KeyBits(std::size_t position) { words_[position / 64] = std::uint64_t{1} << position % 64; }

  bool has(std::size_t position) const { return (words_[position / 64] >> position % 64 & 1u) != 0; }
  KeyBits operator|(const KeyBits& other) const {
    KeyBits both = *this;
    for (std::size_t i = 0; i < words_.size(); ++i) both.words_[i] |= other.words_[i];
    return both;
  }
  KeyBits operator^(const KeyBits& other) const {
    KeyBits sum = *this;
    for (std::size_t i = 0; i < words_.size(); ++i) sum.words_[i] ^= other.words_[i];
    return sum;
  }
  bool empty() const { return *this == KeyBits(); }
  friend auto operator<=>(const KeyBits&, const KeyBits&) = default;

 private:
  std::array<std::uint64_t, (most_key_bits + 63) / 64> words_{};
};

// One pass of DES: the number of its key, from 0, and whether it decrypts.
struct DesPass {
  std::uint8_t key = 0;
  bool backwards = false;
  bool known = false;  // no bit of the key changes within a launch: the circuit has the pass as one node
};

struct Node {
  enum class Kind : std::uint8_t {
    input,  // bit `table`, 0 to 63: of IP of the block that goes in (L0 R0); 64 to 127: of the one expected (R16 L16)
    gate,   // the LUT3 `table` of a, b, c
    keyed,  // a ^ the key bit at position `table`
    whole,  // bit `table` of known pass number a: 0 to 31 of half 17, 32 to 63 of half 16
  };
  Kind kind;
  std::uint8_t table;
  NodeId a, b, c;
  KeyBits keys;  // the key bits that it depends on
};

// The inputs of a known pass: halves 0 and 1.
struct WholePass {
  DesPass pass;
  std::array<NodeId, 64> from;
};

// Where the forward and the backward half of a circuit meet: at half 2 to 15 of a pass that is not a known pass.
struct Meeting {
  std::size_t pass;
  int half;
};

// Two nodes that are equal for the right key.
struct Comparison {
  NodeId forward, backward;
};

class DesCircuit {
 public:
  // For an expected block whose bits are all known. comparisons() has 32 pairs, four for each S-box, in the order of
  // the S-boxes.
  DesCircuit(std::span<const DesPass> passes, const Meeting& meeting);

  // For an expected block of which only the bits with a one in `mask` are known (bit i: bit i % 8 of byte i / 8). It
  // computes all rounds forward. comparisons() has one pair for each known bit.
  DesCircuit(std::span<const DesPass> passes, std::uint64_t mask);

  // Any one round: inputs 0 to 31 are the left half, 32 to 63 the right half. The `table` of a keyed node is the number
  // of its bit in the subkey, from 0. comparisons()[i] has bit i of the new half, and bit i of the left half that it
  // replaces.
  static DesCircuit one_round();

  std::span<const DesPass> passes() const { return passes_; }
  std::span<const WholePass> whole_passes() const { return whole_passes_; }
  bool meets() const { return meets_; }  // whether there is a backward half

  // The known bits of the expected block: bit i for input 64 + i.
  std::uint64_t known() const { return known_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Comparison> comparisons() const { return comparisons_; }

  NodeId gate(unsigned table, NodeId a, NodeId b, NodeId c);

 private:
  using Half = std::array<NodeId, 32>;

  DesCircuit() = default;
  NodeId add(const Node& node);
  Half input_half(int first);
  Half add_round(const Half& left, const Half& right, const DesPass& pass, int round);
  void add_rounds(Half& left, Half& right, const DesPass& pass, int count);
  void add_pass(Half& left, Half& right, const DesPass& pass);
  template <class Position>
  Half add_round_of(const Half& left, const Half& right, Position&& position);

  std::vector<DesPass> passes_;
  std::vector<WholePass> whole_passes_;
  bool meets_ = false;
  std::uint64_t known_ = 0;
  std::vector<Node> nodes_;
  std::vector<Comparison> comparisons_;
};

inline constexpr std::size_t des_inputs = 128;

}  // namespace warpcipher::search::cuda
