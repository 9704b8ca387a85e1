// SPDX-License-Identifier: Apache-2.0
// ChaCha20 (RFC 8439) and HChaCha20 (draft-irtf-cfrg-xchacha-03), for host and device. Additions, exclusive ors and
// rotations only by constants: constant time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bytes.hpp"
#include "core/host_device.hpp"
#include "core/wipe.hpp"

namespace warpcipher::chacha {

inline constexpr std::size_t key_len = 32;
inline constexpr std::size_t nonce_len = 12;
inline constexpr std::size_t block_len = 64;
inline constexpr int double_rounds = 10;

// The matrix of section 2.3, row by row: constants, key, counter and nonce.
struct State {
  std::uint32_t words[16];
};

// Word i of its first row: "expand 32-byte k".
WARPCIPHER_INLINE constexpr std::uint32_t first_row(int i) {
  constexpr std::uint32_t words[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  return words[i];
}

namespace detail {

WARPCIPHER_INLINE constexpr std::uint32_t rotate(std::uint32_t x, int n) { return x << n | x >> (32 - n); }

}  // namespace detail

// Section 2.1.
WARPCIPHER_INLINE constexpr void quarter_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
  a += b;
  d = detail::rotate(d ^ a, 16);
  c += d;
  b = detail::rotate(b ^ c, 12);
  a += b;
  d = detail::rotate(d ^ a, 8);
  c += d;
  b = detail::rotate(b ^ c, 7);
}

// Sections 2.2 and 2.3: a double round is a round of the columns and one of the diagonals.
WARPCIPHER_INLINE constexpr void round_of_columns(std::uint32_t (&x)[16]) {
  quarter_round(x[0], x[4], x[8], x[12]);
  quarter_round(x[1], x[5], x[9], x[13]);
  quarter_round(x[2], x[6], x[10], x[14]);
  quarter_round(x[3], x[7], x[11], x[15]);
}

WARPCIPHER_INLINE constexpr void round_of_diagonals(std::uint32_t (&x)[16]) {
  quarter_round(x[0], x[5], x[10], x[15]);
  quarter_round(x[1], x[6], x[11], x[12]);
  quarter_round(x[2], x[7], x[8], x[13]);
  quarter_round(x[3], x[4], x[9], x[14]);
}

WARPCIPHER_INLINE constexpr void double_round(std::uint32_t (&x)[16]) {
  round_of_columns(x);
  round_of_diagonals(x);
}

// The state of a block: key of 32 bytes, nonce of 12.
WARPCIPHER_HD constexpr State make_state(const std::uint8_t* key, std::uint32_t counter, const std::uint8_t* nonce) {
  State state{{first_row(0), first_row(1), first_row(2), first_row(3)}};
  for (int i = 0; i < 8; ++i) state.words[4 + i] = load_le32(key + 4 * i);
  state.words[12] = counter;
  for (int i = 0; i < 3; ++i) state.words[13 + i] = load_le32(nonce + 4 * i);
  return state;
}

// The block function (section 2.3): the words of a block of key stream, to be stored little-endian.
WARPCIPHER_HD constexpr State key_stream(const State& state) {
  State x = state;
  for (int i = 0; i < double_rounds; ++i) double_round(x.words);
  for (int i = 0; i < 16; ++i) x.words[i] += state.words[i];
  return x;
}

// Words as bytes.
WARPCIPHER_HD constexpr void store_words(std::uint8_t* out, const std::uint32_t* words, int count) {
  for (int i = 0; i < count; ++i) store_le32(out + 4 * i, words[i]);
}

// HChaCha20 (section 2.2 of the draft): a key for the first 16 bytes of a nonce. XChaCha20 is ChaCha20 under that key,
// with four zero bytes and the rest of the nonce as its nonce (section 2.3).
WARPCIPHER_HD constexpr void derive_key(const std::uint8_t* key, const std::uint8_t* nonce, std::uint8_t* derived) {
  State x = make_state(key, load_le32(nonce), nonce + 4);
  for (int i = 0; i < double_rounds; ++i) double_round(x.words);
  store_words(derived, x.words, 4);
  store_words(derived + 16, x.words + 12, 4);
}

// ChaCha20's key and nonce of a message, for the host: the caller's, or derived from them by XChaCha20
// (draft-irtf-cfrg-xchacha-03, section 2.3).
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
