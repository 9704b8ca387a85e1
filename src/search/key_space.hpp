// SPDX-License-Identifier: Apache-2.0
// All keys that fit a template, numbered from 0. The numbering depends only on the template: it is the same for every
// engine, device and version, so that ranges can be distributed, recorded and resumed.
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
// An engine may map bits to lanes, loops and threads in any way: in a range of 2^k keys whose first number is a
// multiple of 2^k, with k <= F, the low k free bits take all values and the others are constant. Only the set of tested
// numbers matters, and the number under which a hit is reported.
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

// Key bits, without parity bits, numbered from 0 (the most significant bit of the first byte). The first are those
// whose change from one key to the next costs an engine least.
//
// DES: ordered by the number of S-boxes that must be computed again in rounds 1 to 12 from the plaintext and in rounds
// 16 and 15 from the ciphertext. Round 1 does not use the first eight; round 16 does not use the next eight. Triple
// DES: the same order for each key, the last key first. AES with Nk key words: bytes of word Nk - 2 first, which change
// least of round 1 and of the key schedule.
std::span<const std::uint16_t> fastest_first(CipherId cipher);

const CipherInfo& cipher_info(CipherId cipher);

class KeySpace {
 public:
  // Throws Error{invalid_argument} if a list is empty, has a value twice, is for a byte that the key does not have, or
  // is the second for its byte. Candidates of DES that differ only in parity become one, with the lower cost.
  explicit KeySpace(const KeyTemplate& key_template);

  CipherId cipher() const { return template_.cipher; }

  // The given template, with ignored bits cleared and lists as in lists().
  const KeyTemplate& key_template() const { return template_; }

  std::size_t key_len() const { return key_len_; }

  // N: keys are numbered 0 to N - 1. Always at least 1.
  const KeyNumber& size() const { return size_; }
  double log2_size() const;

  // F bits; free_bits()[i] is the key bit of bit i of the number.
  std::span<const std::uint16_t> free_bits() const { return free_bits_; }

  // In the order of bytes; each list is in the order of its candidates. Parity bits of all values are zero.
  std::span<const CandidateList> lists() const { return template_.lists; }

  // The key of a number below size(): key_len() bytes. DES keys get odd parity.
  void key_at(const KeyNumber& number, std::uint8_t* key) const;

  // The number of a key; none if the key does not fit the template.
  std::optional<KeyNumber> number_of(const std::uint8_t* key) const;

  // Makes the DES key canonical: odd parity in each byte. AES keys stay as they are.
  void set_parity(std::uint8_t* key) const;

  // log2 of the number of keys that differ only in parity: 0, 8, 16 or 24.
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
  // Whether there are any: that is enough for a walk, and needs a fraction of the memory.
  std::vector<std::vector<std::uint8_t>> reachable_;
  KeyNumber combinations_;
  KeyNumber size_;
};

// Steps through the keys from a number on, much faster than key_at(). The space must outlive the cursor.
class KeyCursor {
 public:
  KeyCursor(const KeySpace& space, const KeyNumber& first);
  ~KeyCursor();
  KeyCursor(const KeyCursor&) = delete;
  KeyCursor& operator=(const KeyCursor&) = delete;

  // key_len() bytes; DES keys have parity bits of zero.
  const std::uint8_t* key() const { return key_.data(); }

  // Moves to the next key. After the last key the key is arbitrary.
  void next();

  // Moves from a key whose free bits are all zero to the first key of the next combination.
  void next_combination();

 private:
  const KeySpace& space_;
  std::array<std::uint8_t, max_key_len> key_{};
  KeySpace::Choice choice_{};
  int cost_ = 0;
};

}  // namespace warpcipher::search
