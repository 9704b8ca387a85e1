// SPDX-License-Identifier: Apache-2.0
// Key bits of the innermost loop, added in gates that are there anyway.
//
// A half block's bit h is the XOR of the bit before the last round, an S-box's output and nothing else: a gate with
// room for a third input. So the register of h may hold h ^ M for any mask M, at no cost but M's: M is chosen so
// that an S-box takes the register as it is. For the half after next,
//
//   h' ^ M' = (h ^ M) ^ f ^ (M ^ M')
//
// Masks are sums of key bits. Bits that a loop or a thread's number sets are in registers; sums of all other bits are
// the same for a granule, and so are in a table in shared memory that four are loaded from at once. A sum with one bit
// of a loop or thread takes a word of a pair in the table; the register that holds its address has that bit.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "search/cuda/des_circuit.hpp"
#include "search/cuda/des_layout.hpp"
#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

// Chooses the masks.
class DesMasks {
 public:
  // varying: the positions of bits of loops and threads.
  DesMasks(const DesCircuit& circuit, const DesPlacement& placement, std::span<const Comparison> compared,
           std::span<const std::size_t> varying);

  // Whether the node is a half block's bit that the innermost loop computes, so that its register may have a mask.
  bool is_masked(NodeId node) const { return masked_[node]; }
  // The mask on its register; nothing for all other nodes.
  const KeyBits& of(NodeId node) const { return masks_[node]; }

 private:
  std::vector<bool> masked_;
  std::vector<KeyBits> masks_;
};

// Hands out operands for masks, and writes the table that they are in.
class DesMaskTable {
 public:
  // A bit of a loop or thread: its position, and the register that holds its mask.
  struct Varying {
    std::size_t position;
    std::string mask;
  };
  // For each position a register, a constant, or an address in shared memory.
  using Bits = std::array<std::string, most_key_bits>;

  explicit DesMaskTable(std::vector<Varying> varying) : varying_(std::move(varying)) {}

  // Operands whose XOR is the mask; none if it is empty. Instructions that load them are appended to text.
  std::vector<std::string> operands(const KeyBits& mask, const Bits& bits, std::string& text);

  // Operands k and c = 2 k + 1 with which x ^ k = c x + k, one multiply-add, or none: k must be all ones or all zeros.
  std::vector<std::string> factors(const KeyBits& mask, const Bits& bits, std::string& text);

  // Bytes of a granule's table.
  std::size_t size() const {
    return entry_len * ((singles_.size() + 3) / 4 + (factors_.size() + 1) / 2 + pairs_.size());
  }

  // Declares registers and writes the table at the address in the register `at`, aligned to 16 bytes. All threads of a
  // granule write the same; a barrier must follow.
  std::string write(const Bits& bits, const std::string& at) const;

  // Follows a change of a varying bit.
  std::string flip(std::size_t position) const;

 private:
  static constexpr std::size_t words_of_load = 4;
  static constexpr std::size_t entry_len =
      16;  // four masks; k and c of two masks; or of a mask for both values of a bit

  static std::string loaded(std::size_t i) { return "%mask" + std::to_string(i); }
  static std::string factor(std::size_t i) { return "%factor" + std::to_string(i); }
  static std::string pair(std::size_t i) { return "%pair" + std::to_string(i); }
  static std::string pair_factor(std::size_t i) { return "%pair_factor" + std::to_string(i); }
  static std::string address_of(std::size_t varying) { return "%flip" + std::to_string(varying); }
  std::string pair_address(std::size_t varying) const {
    return ptx::address(address_of(varying), entry_len * pairs_.size());
  }
  // Text that sets %mask_sum.
  void sum(const KeyBits& mask, const Bits& bits, std::string& text) const;

  std::vector<Varying> varying_;
  std::vector<KeyBits> singles_, factors_, pairs_;
};

// A pass of triple DES whose key does not change within a launch. In the search kernel it is a loop of two rounds, so
// that the innermost loop of the search still fits in the instruction caches. The masks of its key are in shared
// memory, the same for all threads of a block.
//
// A half block is kept with the key of its next use added: for each bit, the key bit of the first S-box that takes it.
// With k_n of round n, x_n = half[n] ^ k_n, and
//
//   x_(n + 1) = x_(n - 1) ^ f(half[n], K_n) ^ (k_(n - 1) ^ k_(n + 1))      k_0 = 0
//
// is one three-input gate for each bit. For the 16 bits that a second S-box takes, one multiply-add adds another mask:
// x ^ m = (2 m + 1) x + m for a mask of ones or zeros.

// Words of shared memory for a pass: for each round 32 masks, then m and 2 m + 1 for 16 more.
inline constexpr std::size_t known_pass_words = std::size_t{16} * (32 + 2 * 16);

// Gates of a pass: S-boxes and sums of 16 rounds.
std::size_t known_pass_gates();

// The key bits that the pass wants added to input i: k_1 for half 1. Those that it leaves added to output i: k_16 for
// half 16.
KeyBits known_pass_input_mask(const DesPass& pass, std::size_t i);
KeyBits known_pass_output_mask(const DesPass& pass, std::size_t i);

// The text's operands, names of registers, and a prefix for its own registers and labels.
struct KnownPass {
  DesPass pass;
  std::string prefix;
  std::string shared;                            // register: where its words are
  std::array<std::string, 64> from, to;          // halves 0 and 1 ^ k_1; halves 17 and 16 ^ k_16
  std::array<std::string, des_key_bits> planes;  // by position in PC-1's output
};

// Registers and masks, once for each thread. All threads of a block write the same values; a barrier must follow.
std::string write_known_pass_masks(const KnownPass& pass);

// Computes `to` from `from`.
std::string write_known_pass(const KnownPass& pass);

}  // namespace warpcipher::search::cuda
