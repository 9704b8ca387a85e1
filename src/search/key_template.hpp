// SPDX-License-Identifier: Apache-2.0
// The known part of a key: bits with their value, and for some bytes a list of candidates. Parity bits of DES keys (the
// least significant bit of each byte) are ignored wherever they appear.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cipher/list.hpp"
#include "core/wipe.hpp"

namespace warpcipher::search {

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

}  // namespace warpcipher::search
