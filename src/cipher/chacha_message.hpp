// SPDX-License-Identifier: Apache-2.0
// ChaCha20's key and nonce of a message, for the host: the caller's, or derived from them by XChaCha20
// (draft-irtf-cfrg-xchacha-03, section 2.3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cipher/chacha.hpp"
#include "core/wipe.hpp"

namespace warpcipher::chacha {

inline constexpr std::size_t extended_nonce_len = 24;

// Of an extended nonce, what follows the 16 bytes that derive_key() takes, behind four zeros.
inline std::array<std::uint8_t, nonce_len> derive_nonce(const std::uint8_t* extended) {
  std::array<std::uint8_t, nonce_len> nonce{};
  std::memcpy(nonce.data() + 4, extended + 16, 8);
  return nonce;
}

class MessageKey {
 public:
  // len: of the nonce, nonce_len or extended_nonce_len.
  MessageKey(const std::uint8_t* key, const std::uint8_t* nonce, std::size_t len) {
    if (len == extended_nonce_len) {
      derive_key(key, nonce, *key_);
      nonce_ = derive_nonce(nonce);
    } else {
      std::memcpy(*key_, key, sizeof *key_);
      std::memcpy(nonce_.data(), nonce, sizeof nonce_);
    }
  }

  const std::uint8_t* key() const { return *key_; }
  const std::uint8_t* nonce() const { return nonce_.data(); }

  // Of a block of key stream.
  Secret<State> state(std::uint32_t counter) const { return Secret<State>(make_state(*key_, counter, nonce())); }

 private:
  Secret<std::uint8_t[key_len]> key_;
  std::array<std::uint8_t, nonce_len> nonce_{};
};

}  // namespace warpcipher::chacha
