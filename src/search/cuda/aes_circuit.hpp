// SPDX-License-Identifier: Apache-2.0
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
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace warpcipher::search::cuda {

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

}  // namespace warpcipher::search::cuda
