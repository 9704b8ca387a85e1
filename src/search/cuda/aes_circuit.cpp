// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/aes_ptx.hpp"

#include <algorithm>
#include <bit>

namespace warpcipher::search::cuda {

AesCircuit::AesCircuit(std::size_t key_words, std::span<const AesGroup> groups, std::size_t levels)
    : key_words_(key_words), levels_(levels) {
  for (Term& term : terms_) term.level = levels;
  for (std::size_t i = 0; i < key_words; ++i) {
    Sum& sum = words_.emplace_back();
    sum.terms.set(i);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    terms_[group_terms + i] = {static_cast<std::uint8_t>(1u << groups[i].byte), groups[i].level};
    words_[groups[i].word].terms.set(group_terms + i);
  }
  std::uint32_t round_constant = 1;
  for (std::size_t i = key_words; i < 4 * (rounds() + 1); ++i) {
    Sum sum = words_[i - key_words];
    const bool rotated = i % key_words == 0;  // NOLINT(clang-analyzer-core.DivideZero): 4, 6 or 8
    if (rotated || (key_words > 6 && i % key_words == 4)) {
      for (std::size_t byte = 0; byte < 4; ++byte) {
        const std::size_t term = sbox_terms + 4 * sub_words_.size() + byte;
        terms_[term] = {static_cast<std::uint8_t>(1u << byte),
                        byte_level(words_[i - 1], rotated ? (byte + 1) % 4 : byte)};
        sum.terms.set(term);
      }
      sub_words_.push_back(i);
      if (rotated) {
        sum.constant ^= round_constant;
        round_constant = round_constant << 1 ^ (round_constant >> 7 != 0 ? 0x11bu : 0u);
      }
    } else {
      sum = sum ^ words_[i - 1];
    }
    words_.push_back(sum);
  }
  state_levels_.resize(rounds() - 1);
  for (std::size_t round = 0; round < state_levels_.size(); ++round) {
    for (std::size_t column = 0; column < 4; ++column) {
      std::size_t lookups = levels;
      for (std::size_t row = 0; round > 0 && row < 4; ++row) {
        lookups = std::min(lookups, state_levels_[round - 1][(column + row) % 4][row]);
      }
      for (std::size_t byte = 0; byte < 4; ++byte) {
        state_levels_[round][column][byte] = std::min(lookups, byte_level(words_[4 * round + column], byte));
      }
    }
  }
}

Sum AesCircuit::word(std::size_t index, std::size_t byte) const {
  Sum sum = words_[index];
  for (std::size_t i = 0; i < sub_words_.size(); ++i) {
    if (sub_words_[i] < 4 * (rounds() - 1)) continue;
    for (std::size_t other = 0; other < 4; ++other) {
      if (other != byte) sum.terms.reset(sbox_terms + 4 * i + other);
    }
  }
  return sum;
}

Sum AesCircuit::first_state(std::size_t column) const {
  Sum sum = words_[column];
  sum.terms.set(text_terms + column);
  return sum;
}

std::size_t AesCircuit::level(const Sum& sum) const {
  std::size_t level = levels_;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (sum.terms[i]) level = std::min(level, terms_[i].level);
  }
  return level;
}

std::size_t AesCircuit::byte_level(const Sum& sum, std::size_t byte) const {
  std::size_t level = levels_;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (sum.terms[i] && (terms_[i].bytes >> byte & 1u) != 0) level = std::min(level, terms_[i].level);
  }
  return level;
}

AesCircuit::Lookup AesCircuit::lookup(std::size_t term) const {
  const std::size_t to = (term - sbox_terms) % 4;
  const std::size_t word = sub_words_[(term - sbox_terms) / 4];
  return {word - 1, word % key_words_ == 0 ? (to + 1) % 4 : to, to};
}

double AesCircuit::cost(std::span<const double> turns) const {
  std::vector<double> weights{1};
  for (const double count : turns) weights.push_back(weights.back() / count);
  double sum = 0;
  for (std::size_t round = 0; round + 1 < state_levels_.size(); ++round) {
    for (const auto& column : state_levels_[round]) {
      for (const std::size_t level : column) sum += weights[level];
    }
  }
  for (std::size_t i = 0; i < sub_words_.size() && sub_words_[i] < 4 * (rounds() - 1); ++i) {
    for (std::size_t byte = 0; byte < 4; ++byte) sum += weights[terms_[sbox_terms + 4 * i + byte].level];
  }
  return sum;
}

void choose_levels(std::size_t key_words, std::span<AesGroup> groups, std::span<const double> turns,
                   std::size_t levels) {
  for (AesGroup& group : groups) group.level = 0;
  const auto cost = [&] {
    std::vector<double> of_levels(levels, 1.0);
    for (std::size_t i = 0; i < groups.size(); ++i) of_levels[groups[i].level] *= turns[i];
    return AesCircuit(key_words, groups, levels).cost(of_levels);
  };
  // From the innermost level outwards: the best choice of up to three groups of those that are left. All others are
  // further out.
  for (std::uint8_t level = 0; level + 1u < levels; ++level) {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].level == level) left.push_back(i);
    }
    double best = cost();
    std::uint32_t chosen = (1u << left.size()) - 1;
    const auto assign = [&](std::uint32_t set) {
      for (std::size_t i = 0; i < left.size(); ++i) {
        groups[left[i]].level = static_cast<std::uint8_t>((set >> i & 1u) != 0 ? level : level + 1);
      }
    };
    for (std::uint32_t set = 1; set < 1u << left.size(); ++set) {
      if (std::popcount(set) > 3) continue;
      assign(set);
      const double sum = cost();
      if (sum >= best) continue;
      best = sum;
      chosen = set;
    }
    assign(chosen);
  }
}

}  // namespace warpcipher::search::cuda
