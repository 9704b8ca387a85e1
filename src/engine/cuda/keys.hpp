// SPDX-License-Identifier: Apache-2.0
// What the CUDA engine derives from a key, once in the key's life, on the host and in constant time.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "batch/message.hpp"
#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"

namespace warpcipher::cuda {

struct AesKeyState final : KeyState {
  explicit AesKeyState(const Key& key);
  ~AesKeyState() override;
  AesKeyState(const AesKeyState&) = delete;
  AesKeyState& operator=(const AesKeyState&) = delete;

  aes::Schedule schedule;        // encryption; XTS: of the key for the data
  aes::Schedule tweak_schedule;  // XTS: encryption with the key for the tweak
  gf128::Element hash_key;       // GCM: H
  // Round keys in the order they are added, as little-endian columns.
  std::uint32_t encryption_words[60];
  std::uint32_t decryption_words[60];
  std::uint32_t tweak_words[60];  // XTS: of tweak_schedule

  const std::uint32_t* words(bool inverse) const { return inverse ? decryption_words : encryption_words; }
};

const AesKeyState& aes_key_state(const Key& key);

// The keys of a group, each numbered once.
class KeyList {
 public:
  // The number of a key, from 0, in the order of first sight.
  std::uint32_t number(const Key& key) {
    if (&key == last_) return last_number_;  // messages with one key mostly come in a row
    const auto [found, added] = numbers_.try_emplace(&key, static_cast<std::uint32_t>(keys_.size()));
    if (added) keys_.push_back(&key);
    last_ = &key;
    return last_number_ = found->second;
  }

  const std::vector<const Key*>& keys() const { return keys_; }

 private:
  const Key* last_ = nullptr;
  std::uint32_t last_number_ = 0;
  std::unordered_map<const Key*, std::uint32_t> numbers_;
  std::vector<const Key*> keys_;
};

}  // namespace warpcipher::cuda
