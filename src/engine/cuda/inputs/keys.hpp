// SPDX-License-Identifier: Apache-2.0
// Derived by the CUDA engine on the host, in constant time, from the key of a single message; once for each
// key. Batches with many keys derive theirs on the GPU (aes_keys.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

struct AesKeyState final : KeyState {
  explicit AesKeyState(const Key& key);
  ~AesKeyState() override;
  AesKeyState(const AesKeyState&) = delete;
  AesKeyState& operator=(const AesKeyState&) = delete;

  aes::Schedule schedule;   // encryption; XTS: of the key for the data
  gf128::Element hash_key;  // GCM: H
  // Round keys in the order of use, as little-endian columns.
  std::uint32_t encryption_words[60];
  std::uint32_t decryption_words[60];
  std::uint32_t tweak_words[60];  // XTS: of the key for tweaks, which encrypts in both directions

  const std::uint32_t* words(bool inverse) const { return inverse ? decryption_words : encryption_words; }
};

const AesKeyState& aes_key_state(const Key& key);

// The keys of a group, each with a number. A hash table of addresses, because a million messages may have a key each.
class KeyList {
 public:
  // The number of a key, from 0, in the order of first use.
  std::uint32_t number(const Key& key) {
    if (!keys_.empty() && keys_[last_] == &key) return last_;
    if (2 * keys_.size() >= table_.size()) grow();
    std::uint32_t& entry = table_[place_of(key)];
    if (entry == empty) {
      entry = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(&key);
    }
    return last_ = entry;
  }

  const std::vector<const Key*>& keys() const { return keys_; }

 private:
  static constexpr std::uint32_t empty = 0xffffffffu;

  // The entry of the key, or an empty entry for it.
  std::size_t place_of(const Key& key) const {
    constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15u;  // spreads addresses (Knuth, volume 3, section 6.4)
    const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&key) * golden_ratio;
    std::size_t place = (hash >> 32) & (table_.size() - 1);
    while (table_[place] != empty && keys_[table_[place]] != &key) place = (place + 1) & (table_.size() - 1);
    return place;
  }

  void grow() {
    table_.assign(table_.empty() ? 16 : 2 * table_.size(), empty);
    for (std::uint32_t k = 0; k < keys_.size(); ++k) table_[place_of(*keys_[k])] = k;
  }

  std::vector<std::uint32_t> table_;  // numbers; the size is a power of two
  std::vector<const Key*> keys_;
  std::uint32_t last_ = 0;
};

}  // namespace warpcipher::cuda
