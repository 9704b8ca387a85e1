// SPDX-License-Identifier: Apache-2.0
#include "search/key_space.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "cipher/des.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"

namespace warpcipher::search {
namespace {

// Positions in the output of PC-1, from 0.
constexpr std::array<std::uint8_t, 56> des_positions{
    35, 43, 9,  54, 18, 25, 38, 22, 34, 8,  42, 17, 21, 24, 37, 53, 6,  15, 49, 4,  23, 2,  5,  14, 20, 27, 31, 36,
    41, 46, 11, 0,  10, 13, 52, 55, 29, 32, 39, 44, 50, 19, 26, 1,  45, 33, 48, 51, 3,  30, 40, 12, 28, 7,  16, 47};

std::vector<std::uint16_t> order_des(std::size_t keys) {
  std::vector<std::uint16_t> order;
  for (std::size_t key = keys; key-- > 0;) {
    for (const std::uint8_t position : des_positions) {
      order.push_back(static_cast<std::uint16_t>(64 * key + des::permuted_choice_1[position] - 1u));
    }
  }
  return order;
}

// Within a word the bytes 0, 3, 1, 2; within a byte the least significant bit first.
std::vector<std::uint16_t> order_aes(std::initializer_list<unsigned> words) {
  std::vector<std::uint16_t> order;
  for (const unsigned word : words) {
    for (const unsigned byte : {0u, 3u, 1u, 2u}) {
      for (unsigned bit = 8; bit-- > 0;) order.push_back(static_cast<std::uint16_t>(32 * word + 8 * byte + bit));
    }
  }
  return order;
}

bool key_bit(const std::uint8_t* key, std::size_t bit) { return (key[bit / 8] >> (7 - bit % 8) & 1u) != 0; }

void flip_bit(std::uint8_t* key, std::size_t bit) {
  key[bit / 8] = static_cast<std::uint8_t>(key[bit / 8] ^ 0x80u >> bit % 8);
}

[[noreturn]] void refuse_byte(std::size_t byte, const std::string& what) {
  refuse("key template, byte ", byte, ": ", what);
}

}  // namespace

std::span<const std::uint16_t> fastest_first(CipherId cipher) {
  using Orders = std::array<std::vector<std::uint16_t>, cipher_list.size()>;
  static constinit FirstUse<Orders> orders;
  const Orders& all = orders.get([] {
    return Orders{
        order_aes({2, 1, 0, 3}),
        order_aes({4, 5, 3, 2, 1, 0}),
        order_aes({6, 5, 4, 7, 3, 2, 1, 0}),
        order_des(1),
        order_des(2),
        order_des(3),
    };
  });
  return all[static_cast<std::size_t>(cipher)];
}

const CipherInfo& cipher_info(CipherId cipher) {
  for (const CipherInfo& info : cipher_list) {
    if (info.id == cipher) return info;
  }
  refuse("unknown cipher");
}

KeySpace::KeySpace(const KeyTemplate& key_template)
    : template_(key_template), key_len_(cipher_info(key_template.cipher).key_len) {
  const std::uint8_t used_bits = is_aes(cipher()) ? 0xff : 0xfe;
  std::array<bool, max_key_len> listed{};
  std::sort(template_.lists.begin(), template_.lists.end(),
            [](const CandidateList& a, const CandidateList& b) { return a.byte < b.byte; });
  for (CandidateList& list : template_.lists) {
    if (list.byte >= key_len_) refuse_byte(list.byte, "the key has " + std::to_string(key_len_) + " bytes");
    if (listed[list.byte]) refuse_byte(list.byte, "two lists of candidates were given, expected one");
    if (list.candidates.empty()) refuse_byte(list.byte, "the list of candidates is empty");
    listed[list.byte] = true;
    std::array<bool, 256> given{};
    for (Candidate& candidate : list.candidates) {
      if (std::exchange(given[candidate.value], true)) refuse_byte(list.byte, "a candidate is given twice");
      candidate.value &= used_bits;
    }
    std::stable_sort(list.candidates.begin(), list.candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
    std::array<bool, 256> seen{};
    const auto end = std::remove_if(list.candidates.begin(), list.candidates.end(), [&](const Candidate& candidate) {
      return std::exchange(seen[candidate.value], true);
    });
    list.candidates.erase(end, list.candidates.end());
    max_cost_ += list.candidates.back().cost;
  }
  for (std::size_t byte = 0; byte < max_key_len; ++byte) {
    if (byte >= key_len_ || listed[byte]) template_.known[byte] = 0;
    template_.known[byte] &= used_bits;
    template_.value[byte] &= template_.known[byte];
  }
  for (const std::uint16_t bit : fastest_first(cipher())) {
    if (!listed[bit / 8u] && !key_bit(template_.known.data(), bit)) free_bits_.push_back(bit);
  }

  const std::size_t count = template_.lists.size();
  ways_.assign(count + 1, std::vector<KeyNumber>(static_cast<std::size_t>(max_cost_) + 1));
  ways_[count][0] = 1;
  for (std::size_t i = count; i-- > 0;) {
    for (const Candidate& candidate : template_.lists[i].candidates) {
      for (std::size_t cost = candidate.cost; cost < ways_[i].size(); ++cost) {
        ways_[i][cost] += ways_[i + 1][cost - candidate.cost];
      }
    }
  }
  for (const std::vector<KeyNumber>& of_lists : ways_) {
    std::vector<std::uint8_t>& reachable = reachable_.emplace_back();
    for (const KeyNumber& ways : of_lists) reachable.push_back(ways != KeyNumber{} ? 1 : 0);
  }
  for (const KeyNumber& ways : ways_[0]) combinations_ += ways;
  size_ = combinations_ << free_bits_.size();
}

double KeySpace::log2_size() const {
  return std::log2(combinations_.to_double()) + static_cast<double>(free_bits_.size());
}

bool KeySpace::reachable(std::size_t list, int cost) const {
  return cost >= 0 && reachable_[list][static_cast<std::size_t>(cost)] != 0;
}

// The choice of a combination; returns its total cost.
int KeySpace::unrank(KeyNumber combination, Choice& choice) const {
  std::size_t total = 0;
  while (total + 1 < ways_[0].size() && combination >= ways_[0][total]) combination -= ways_[0][total++];
  std::size_t rest = total;
  for (std::size_t i = 0; i < template_.lists.size(); ++i) {
    const std::vector<Candidate>& candidates = template_.lists[i].candidates;
    std::size_t chosen = 0;
    for (; chosen + 1 < candidates.size(); ++chosen) {
      if (candidates[chosen].cost > rest) continue;
      const KeyNumber& ways = ways_[i + 1][rest - candidates[chosen].cost];
      if (combination < ways) break;
      combination -= ways;
    }
    choice[i] = static_cast<std::uint8_t>(chosen);
    rest -= std::min<std::size_t>(rest, candidates[chosen].cost);
  }
  return static_cast<int>(total);
}

// The lexicographically first choice for lists `list` and later with exactly this cost.
bool KeySpace::complete(Choice& choice, std::size_t list, int cost) const {
  for (; list < template_.lists.size(); ++list) {
    const std::vector<Candidate>& candidates = template_.lists[list].candidates;
    std::size_t chosen = 0;
    while (chosen < candidates.size() && !reachable(list + 1, cost - candidates[chosen].cost)) ++chosen;
    if (chosen == candidates.size()) return false;
    choice[list] = static_cast<std::uint8_t>(chosen);
    cost -= candidates[chosen].cost;
  }
  return cost == 0;
}

// The next combination: advances the last list that has another candidate with a reachable cost; if none has, takes the
// next total cost.
bool KeySpace::advance(Choice& choice, int& cost) const {
  int rest = 0;  // of the lists from i on
  for (std::size_t i = template_.lists.size(); i-- > 0;) {
    const std::vector<Candidate>& candidates = template_.lists[i].candidates;
    rest += candidates[choice[i]].cost;
    for (std::size_t next = choice[i] + std::size_t{1}; next < candidates.size() && candidates[next].cost <= rest;
         ++next) {
      if (!reachable(i + 1, rest - candidates[next].cost)) continue;
      choice[i] = static_cast<std::uint8_t>(next);
      return complete(choice, i + 1, rest - candidates[next].cost);
    }
  }
  while (++cost <= max_cost_) {
    if (reachable(0, cost)) return complete(choice, 0, cost);
  }
  return false;
}

void KeySpace::place(const Choice& choice, std::uint8_t* key) const {
  for (std::size_t i = 0; i < template_.lists.size(); ++i) {
    key[template_.lists[i].byte] = template_.lists[i].candidates[choice[i]].value;
  }
}

void KeySpace::key_at(const KeyNumber& number, std::uint8_t* key) const {
  std::copy_n(template_.value.begin(), key_len_, key);
  Choice choice{};
  unrank(number >> free_bits_.size(), choice);
  place(choice, key);
  for (std::size_t i = 0; i < free_bits_.size(); ++i) {
    if (number.bit(i)) flip_bit(key, free_bits_[i]);
  }
  set_parity(key);
}

std::optional<KeyNumber> KeySpace::number_of(const std::uint8_t* key) const {
  for (std::size_t byte = 0; byte < key_len_; ++byte) {
    if (((key[byte] ^ template_.value[byte]) & template_.known[byte]) != 0) return std::nullopt;
  }
  const std::uint8_t used_bits = is_aes(cipher()) ? 0xff : 0xfe;
  const std::size_t count = template_.lists.size();
  Choice choice{};
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<Candidate>& candidates = template_.lists[i].candidates;
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
      return candidate.value == (key[template_.lists[i].byte] & used_bits);
    });
    if (found == candidates.end()) return std::nullopt;
    choice[i] = static_cast<std::uint8_t>(found - candidates.begin());
    total += found->cost;
  }
  KeyNumber combination;
  for (std::size_t cost = 0; cost < total; ++cost) combination += ways_[0][cost];
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<Candidate>& candidates = template_.lists[i].candidates;
    for (std::size_t before = 0; before < choice[i]; ++before) {
      if (candidates[before].cost <= total) combination += ways_[i + 1][total - candidates[before].cost];
    }
    total -= candidates[choice[i]].cost;
  }
  KeyNumber number = combination << free_bits_.size();
  for (std::size_t i = 0; i < free_bits_.size(); ++i) {
    if (key_bit(key, free_bits_[i])) number.set_bit(i);
  }
  return number;
}

void KeySpace::set_parity(std::uint8_t* key) const {
  if (is_aes(cipher())) return;
  for (std::size_t i = 0; i < key_len_; ++i) {
    const unsigned used = key[i] & 0xfeu;
    key[i] = static_cast<std::uint8_t>(used | (std::popcount(used) % 2 == 0 ? 1u : 0u));
  }
}

KeyCursor::KeyCursor(const KeySpace& space, const KeyNumber& first) : space_(space) {
  space.key_at(first, key_.data());
  cost_ = space.unrank(first >> space.free_bits_.size(), choice_);
  if (!is_aes(space.cipher())) {
    for (std::uint8_t& byte : key_) byte &= 0xfe;
  }
}

KeyCursor::~KeyCursor() {
  secure_wipe(key_.data(), key_.size());
  secure_wipe(choice_.data(), choice_.size());
}

void KeyCursor::next() {
  for (const std::uint16_t bit : space_.free_bits_) {
    flip_bit(key_.data(), bit);
    if (key_bit(key_.data(), bit)) return;  // no carry
  }
  next_combination();
}

void KeyCursor::next_combination() {
  if (space_.advance(choice_, cost_)) space_.place(choice_, key_.data());
}

}  // namespace warpcipher::search
