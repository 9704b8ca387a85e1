// SPDX-License-Identifier: Apache-2.0
// The search kernel for AES, written as PTX for one template. It depends on which bytes the loops change, not on the
// values of the others. So neither the PTX nor the driver's compiled copy on disk contains any part of the key, and one
// kernel works for all values of the known bits. The driver compiles it; no toolkit is needed.
//
// A thread tests one key at a time. It has nested loops, one for each byte with unknown bits; a loop steps through the
// values of its bits by x = (x - bits) & bits. Values that a loop does not change are computed outside of it
// and kept in a register, so the innermost loop computes little of rounds 1 and 2 and of the
// schedule. Then it compares one byte of the ciphertext: one key in 256 passes, so one warp in eight continues. Then it
// compares three more bytes, which need one column of the state before the last round. If not all of the ciphertext is
// known, it takes the column with the most known bits, and further columns for the keys that are left.
//
// Lane tables (engine/cuda/aes/table_layout.hpp) have rows of 128 bytes, T0 for all x first. The address of a
// lookup is one four-byte dot product. It runs on the multiply pipe, which is otherwise idle:
//
//   dp4a(word, 128 << 8 k, 4 lane) = 128 (byte k) + 4 lane
//
// The S-box values of the schedule are bytes of the same tables.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace warpcipher::search::cuda {

// AES as a search computes it: table lookups and XORs, without key and text. Every lookup knows the innermost loop that
// changes its byte, and is computed in that loop, not further in.
//
// A key is a base, which is the same for all turns of a thread, plus the bits of the loops. The words of its schedule
// (FIPS 197, section 5.2) are linear in the key words and in the S-box values of SubWord. So a word is stored as the
// set of terms whose sum it is; terms that cancel disappear:
//
//   w11 = w7 ^ w10 = w1 ^ w3 ^ SubWord(RotWord(w7)) ^ 2      (AES-128: no w2, though w7 and w10 have it)
//
// A column of the state is the sum of four lookups T_row(byte) and a word of the schedule.

// The loop bits of one byte of the key. Level 0 is the innermost.
struct AesGroup {
  std::uint8_t word, byte;  // byte 0 to 3 of the word
  std::uint8_t level;
};

inline constexpr std::size_t most_aes_groups = 12;

// The terms of sums. Their numbers are in this order: key words (without their loop bits), loop bits by group, words of
// the text, S-box values by SubWord and byte.
using Terms = std::bitset<80>;
inline constexpr std::size_t group_terms = 8;
inline constexpr std::size_t text_terms = group_terms + most_aes_groups;
inline constexpr std::size_t sbox_terms = text_terms + 4;

struct Sum {
  Terms terms;
  std::uint32_t constant = 0;  // rightmost byte: byte 0 of the word
  friend bool operator==(const Sum&, const Sum&) = default;
  friend Sum operator^(const Sum& a, const Sum& b) { return {a.terms ^ b.terms, a.constant ^ b.constant}; }
};

class AesCircuit {
 public:
  // levels: of loops. A term that is in no loop has level `levels`.
  AesCircuit(std::size_t key_words, std::span<const AesGroup> groups, std::size_t levels);

  std::size_t key_words() const { return key_words_; }
  std::size_t rounds() const { return key_words_ + 6; }
  std::size_t levels() const { return levels_; }

  // Word `index` of the schedule. Of the S-box values after the last whole round key it has only those in byte `byte`.
  Sum word(std::size_t index, std::size_t byte) const;

  // Column `column` of the text, with the first round key.
  Sum first_state(std::size_t column) const;

  std::size_t level(std::size_t term) const { return terms_[term].level; }
  std::size_t level(const Sum& sum) const;                         // of its innermost term
  std::size_t byte_level(const Sum& sum, std::size_t byte) const;  // of its innermost term in that byte

  // The level of byte `byte` of a column after round `round`, 0 to rounds() - 2.
  std::size_t state_level(std::size_t round, std::size_t column, std::size_t byte) const {
    return state_levels_[round][column][byte];
  }

  // Where an S-box value comes from, and its byte in the sum.
  struct Lookup {
    std::size_t word, from, to;
  };
  Lookup lookup(std::size_t term) const;

  // The average number of lookups in a turn of the innermost loop. turns: of all loops of each level.
  double cost(std::span<const double> turns) const;

 private:
  struct Term {
    std::uint8_t bytes = 0xf;  // the bytes of the sum that it is in, as a mask
    std::size_t level = 0;
  };

  std::size_t key_words_;
  std::size_t levels_;
  std::array<Term, Terms{}.size()> terms_{};
  std::vector<Sum> words_;
  std::vector<std::size_t> sub_words_;  // the words that SubWord goes into
  std::vector<std::array<std::array<std::size_t, 4>, 4>> state_levels_;
};

// Chooses the level of each group, with at most `levels` levels, so that a turn needs the fewest lookups. turns: of
// each group's loop.
void choose_levels(std::size_t key_words, std::span<AesGroup> groups, std::span<const double> turns,
                   std::size_t levels);

// Never changes the result. H200, 60 random bits unknown, G keys/s:
//
//   threads        512    768    1024
//   AES-128        62.1   61.1   62.1    2 tables, 1024 threads: 58.9
//   AES-192               53.3   54.1
//   AES-256        44.3   41.7   43.2    (with 1024 some registers are spilled)
struct AesPolicy {
  std::uint32_t threads = 512;  // of a block; one block runs on a multiprocessor
  std::uint32_t tables = 4;     // or 2: T2 and T3 are T0 and T1 rotated, for GPUs with less shared memory
  friend bool operator==(const AesPolicy&, const AesPolicy&) = default;
};

// The parameters of a launch. Words are as a little-endian machine loads them.
struct AesParameters {
  std::uint64_t keys;     // address: the key of each unit, its loop bits zero
  std::uint64_t entries;  // address: T0
  std::uint64_t hits;     // address: the number of hits, as 32 bits of 128, then the hits
  std::uint32_t units, capacity;
  std::uint32_t in[4], expected[4], mask[4];
  std::uint32_t bits[most_aes_groups];  // of each group, in its word
};
static_assert(sizeof(AesParameters) == 128, "the kernel reads it by offsets");

// A compared byte of the ciphertext, by its position before the last ShiftRows.
struct AesByte {
  std::uint8_t column, row;

  std::size_t output_column() const { return (column + 4u - row) % 4; }
};

// The bytes to compare: with 32 known bits, or all known bits if there are fewer. Column by column; those with the most
// known bits come first.
std::vector<AesByte> choose_aes_bytes(const std::array<std::uint8_t, 16>& mask);

// A hit: the known bits of these bytes match. Turns count from 0 through all loops.
struct AesHit {
  std::uint32_t unit, turn, one, zero;
};

struct AesKernel {
  static constexpr const char* name = "search_aes";
  std::string ptx;
  std::size_t shared_len;  // bytes for each block
};

// groups: the innermost loop first, so by level. bytes: at least one.
AesKernel write_aes_kernel(std::size_t key_words, std::span<const AesGroup> groups, std::size_t levels,
                           std::span<const AesByte> bytes, const AesPolicy& policy);

}  // namespace warpcipher::search::cuda
