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
//   combination  one candidate of each list. Combinations are numbered by total cost, the least first; ones of equal
//                cost in lexicographic order: of the list of the lowest byte first, each list in its own order, which
//                is by cost and then as given.
//
// An engine may map bits to lanes, loops and threads in any way: in a range of 2^k keys whose first number is a
// multiple of 2^k, with k <= F, the low k free bits take all values and the others are constant. Only the set of tested
// numbers matters, and the number under which a hit is reported.
#pragma once

#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cipher/list.hpp"
#include "core/wipe.hpp"

namespace warpcipher::search {

// The known part of a key: bits with their value, and for some bytes a list of candidates. Parity bits of DES keys (the
// least significant bit of each byte) are ignored wherever they appear.
inline constexpr std::size_t max_key_len = 32;

// One value that a key byte may have, and its cost. Costs of bytes add up, as logarithms of probabilities do, and keys
// are searched in the order of their total cost. In a list without an order all costs are equal.
struct Candidate {
  std::uint8_t value;
  std::uint8_t cost;  // 0: the most likely

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// The candidates of one key byte: at least one, no value twice.
struct CandidateList {
  std::size_t byte;  // from 0
  std::vector<Candidate> candidates;
};

// A template is plain data; KeySpace checks it. Wiped when freed.
struct KeyTemplate {
  CipherId cipher = CipherId::aes_128;

  // Bits of the key's bytes; bytes past the key's end are not read. A bit of value counts where known has a one. A byte
  // with a list takes its values from the list only.
  std::array<std::uint8_t, max_key_len> value{};
  std::array<std::uint8_t, max_key_len> known{};
  std::vector<CandidateList> lists;  // at most one for each byte

  KeyTemplate() = default;
  KeyTemplate(const KeyTemplate&) = default;
  KeyTemplate& operator=(const KeyTemplate&) = default;
  ~KeyTemplate() {
    secure_wipe(value.data(), value.size());
    for (CandidateList& list : lists) secure_wipe(list.candidates.data(), list.candidates.size() * sizeof(Candidate));
  }
};

// The number of a key in a search: an unsigned integer of 320 bits, wide enough for 2^256, the count of all AES-256
// keys. Arithmetic wraps modulo 2^320, which nothing here reaches.
class KeyNumber {
 public:
  static constexpr std::size_t limbs = 5;
  static constexpr std::size_t bits = 64 * limbs;

  constexpr KeyNumber() = default;
  constexpr KeyNumber(std::uint64_t value) : limbs_{value} {}  // NOLINT(google-explicit-constructor): counts mix freely

  // Limb 0 is the least significant.
  constexpr std::uint64_t limb(std::size_t index) const { return limbs_[index]; }
  constexpr void set_limb(std::size_t index, std::uint64_t value) { limbs_[index] = value; }
  constexpr std::uint64_t low64() const { return limbs_[0]; }

  constexpr bool bit(std::size_t index) const { return (limbs_[index / 64] >> index % 64 & 1u) != 0; }
  constexpr void set_bit(std::size_t index) { limbs_[index / 64] |= std::uint64_t{1} << index % 64; }

  constexpr KeyNumber& operator+=(const KeyNumber& other) {
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < limbs; ++i) {
      const std::uint64_t sum = limbs_[i] + other.limbs_[i];
      const std::uint64_t total = sum + carry;
      carry = static_cast<std::uint64_t>(sum < limbs_[i]) | static_cast<std::uint64_t>(total < sum);
      limbs_[i] = total;
    }
    return *this;
  }

  constexpr KeyNumber& operator-=(const KeyNumber& other) {
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs; ++i) {
      const std::uint64_t difference = limbs_[i] - other.limbs_[i];
      const std::uint64_t total = difference - borrow;
      borrow =
          static_cast<std::uint64_t>(limbs_[i] < other.limbs_[i]) | static_cast<std::uint64_t>(difference < borrow);
      limbs_[i] = total;
    }
    return *this;
  }

  // Shifts by 0 to bits - 1.
  constexpr KeyNumber operator<<(std::size_t count) const {
    KeyNumber result;
    const std::size_t whole = count / 64;
    const std::size_t part = count % 64;
    for (std::size_t i = limbs; i-- > whole;) {
      result.limbs_[i] = limbs_[i - whole] << part;
      if (part != 0 && i > whole) result.limbs_[i] |= limbs_[i - whole - 1] >> (64 - part);
    }
    return result;
  }

  constexpr KeyNumber operator>>(std::size_t count) const {
    KeyNumber result;
    const std::size_t whole = count / 64;
    const std::size_t part = count % 64;
    for (std::size_t i = 0; i + whole < limbs; ++i) {
      result.limbs_[i] = limbs_[i + whole] >> part;
      if (part != 0 && i + whole + 1 < limbs) result.limbs_[i] |= limbs_[i + whole + 1] << (64 - part);
    }
    return result;
  }

  friend constexpr KeyNumber operator+(KeyNumber a, const KeyNumber& b) { return a += b; }
  friend constexpr KeyNumber operator-(KeyNumber a, const KeyNumber& b) { return a -= b; }
  friend constexpr bool operator==(const KeyNumber& a, const KeyNumber& b) = default;
  friend constexpr std::strong_ordering operator<=>(const KeyNumber& a, const KeyNumber& b) {
    for (std::size_t i = limbs; i-- > 0;) {
      if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] <=> b.limbs_[i];
    }
    return std::strong_ordering::equal;
  }

  // The nearest double, for logarithms and rates.
  double to_double() const {
    double value = 0;
    for (std::size_t i = limbs; i-- > 0;) value = std::ldexp(value, 64) + static_cast<double>(limbs_[i]);
    return value;
  }

 private:
  std::array<std::uint64_t, limbs> limbs_{};
};

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
