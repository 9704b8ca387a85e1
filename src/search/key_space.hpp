// SPDX-License-Identifier: Apache-2.0
// All keys that fit a template, numbered from 0. The numbering depends on the template alone: it is the same for every
// engine, device and version, so that ranges can be shared out, recorded and taken up again.
//
//   number = combination * 2^F + bits
//
//   F            the number of unknown bits outside of candidate lists
//   bits         F bits: bit i is the value of key bit free_bits()[i]. free_bits() has the unknown bits in the order of
//                `fastest_first`, so that every aligned range of 2^k keys holds all values of the k bits that are the
//                best for sharing work between keys.
//   combination  one candidate of each list. Combinations are numbered by total cost, the least first; those of equal
//                cost in lexicographic order: of the list of the lowest byte first, each list in its own order, which
//                is by cost and then as given.
//
// An engine may map bits to lanes, loops and threads as it likes: within a range of 2^k keys whose first number is a
// multiple of 2^k, with k <= F, the low k free bits take all values, the others are fixed. Only the set of numbers
// tested counts, and the number that a hit is reported under.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "search/key_number.hpp"
#include "search/key_template.hpp"

namespace warpcipher::search {

// Key bits from 0, the most significant of the first byte, without parity bits: those whose change from one key to the
// next costs an engine least come first.
//
// DES: by the number of S-boxes that must be computed anew, rounds 1 to 12 from the plaintext and rounds 16 and 15 from
// the ciphertext; the first eight are not used in round 1, the next eight not in round 16. Triple DES: so for each of
// its keys, the last key first. AES with Nk key words: bytes of word Nk - 2 first, which leaves the most of round 1 and
// of the key schedule alone.
std::span<const std::uint16_t> fastest_first(CipherId cipher);

const CipherInfo& cipher_info(CipherId cipher);

class KeySpace {
 public:
  // Throws Error{invalid_argument}: a list of a byte that the key has not, empty, twice for a byte, or with a value
  // twice. Candidates of DES that differ in parity alone are one, at the lower cost.
  explicit KeySpace(const KeyTemplate& key_template);

  CipherId cipher() const { return template_.cipher; }

  // What was given, with bits that do not count cleared and lists as `lists` says.
  const KeyTemplate& key_template() const { return template_; }

  std::size_t key_len() const { return key_len_; }

  // N: keys are numbered 0 to N - 1. Always at least 1.
  const KeyNumber& size() const { return size_; }
  double log2_size() const;

  // F bits; free_bits()[i] is the key bit of bit i of the number.
  std::span<const std::uint16_t> free_bits() const { return free_bits_; }

  // In order of bytes, each in the order of its candidates. Parity bits are zero in all values.
  std::span<const CandidateList> lists() const { return template_.lists; }
  const KeyNumber& combinations() const { return combinations_; }

  // The key of a number below size(): key_len() bytes. DES keys get odd parity.
  void key_at(const KeyNumber& number, std::uint8_t* key) const;

  // The number of a key; none where the key does not fit the template.
  std::optional<KeyNumber> number_of(const std::uint8_t* key) const;

  // Makes the DES key canonical: odd parity in each byte. AES keys stay as they are.
  void set_parity(std::uint8_t* key) const;

  // The keys that are the same but for parity, as a power of two: 0, 8, 16 or 24.
  int log2_equivalents() const { return is_aes(cipher()) ? 0 : static_cast<int>(key_len_); }

 private:
  friend class KeyCursor;
  using Choice = std::array<std::uint8_t, max_key_len>;  // which candidate of each list

  int unrank(KeyNumber combination, Choice& choice) const;
  bool advance(Choice& choice, int& cost) const;
  bool complete(Choice& choice, std::size_t list, int cost) const;
  bool reachable(std::size_t list, int cost) const;
  void place(const Choice& choice, std::uint8_t* key) const;

  KeyTemplate template_;
  std::size_t key_len_;
  std::vector<std::uint16_t> free_bits_;
  int max_cost_ = 0;
  // ways_[i][c]: combinations of lists i and later whose costs add up to c.
  std::vector<std::vector<KeyNumber>> ways_;
  // Whether there are any: all that a walk asks, in a fraction of the memory.
  std::vector<std::vector<std::uint8_t>> reachable_;
  KeyNumber combinations_;
  KeyNumber size_;
};

// Walks through the keys from a number on, one after the other, far faster than key_at. The space outlives it.
class KeyCursor {
 public:
  KeyCursor(const KeySpace& space, const KeyNumber& first);
  ~KeyCursor();
  KeyCursor(const KeyCursor&) = delete;
  KeyCursor& operator=(const KeyCursor&) = delete;

  // key_len() bytes; DES keys have parity bits of zero.
  const std::uint8_t* key() const { return key_.data(); }

  // On to the next key. Past the last key the key is arbitrary.
  void next();

  // On to the first key of the next combination, from a key whose free bits are all zero.
  void next_combination();

 private:
  const KeySpace& space_;
  std::array<std::uint8_t, max_key_len> key_{};
  KeySpace::Choice choice_{};
  int cost_ = 0;
};

}  // namespace warpcipher::search
