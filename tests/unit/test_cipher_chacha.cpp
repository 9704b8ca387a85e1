// SPDX-License-Identifier: Apache-2.0
// ChaCha20's block function and HChaCha20: the values that RFC 8439 and draft-irtf-cfrg-xchacha-03 print.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "cipher/chacha.hpp"

namespace warpcipher::chacha {
namespace {

constexpr std::array<std::uint8_t, key_len> counting_key() {
  std::array<std::uint8_t, key_len> key{};
  for (std::size_t i = 0; i < key_len; ++i) key[i] = static_cast<std::uint8_t>(i);
  return key;
}

// RFC 8439, section 2.3.2.
constexpr std::uint8_t rfc_nonce[nonce_len] = {0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0};
constexpr State rfc_state = make_state(counting_key().data(), 1, rfc_nonce);
static_assert(rfc_state.words[0] == 0x61707865 && rfc_state.words[4] == 0x03020100);
static_assert(rfc_state.words[12] == 1 && rfc_state.words[13] == 0x09000000 && rfc_state.words[14] == 0x4a000000);

TEST(ChaCha, MakesTheBlockOfSection232) {
  constexpr std::uint32_t expected[16] = {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3, 0xc7f4d1c7, 0x0368c033,
                                          0x9aaa2204, 0x4e6cd4c3, 0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                          0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
  const State made = key_stream(rfc_state);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(made.words[i], expected[i]) << i;
  std::uint8_t bytes[8];
  store_words(bytes, made.words, 2);
  EXPECT_EQ(bytes[0], 0x10);
  EXPECT_EQ(bytes[3], 0xe4);
  EXPECT_EQ(bytes[4], 0xd1);
}

// The draft, section 2.2.1.
TEST(ChaCha, DerivesTheKeyOfTheDraft) {
  constexpr std::uint8_t nonce[16] = {0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0, 0x31, 0x41, 0x59, 0x27};
  constexpr std::uint8_t expected[key_len] = {0x82, 0x41, 0x3b, 0x42, 0x27, 0xb2, 0x7b, 0xfe, 0xd3, 0x0e, 0x42,
                                              0x50, 0x8a, 0x87, 0x7d, 0x73, 0xa0, 0xf9, 0xe4, 0xd5, 0x8a, 0x74,
                                              0xa8, 0x53, 0xc1, 0x2e, 0xc4, 0x13, 0x26, 0xd3, 0xec, 0xdc};
  std::uint8_t derived[key_len];
  derive_key(counting_key().data(), nonce, derived);
  for (std::size_t i = 0; i < key_len; ++i) EXPECT_EQ(derived[i], expected[i]) << i;
}

TEST(ChaCha, AMessageHasTheCallersKeyAndNonce) {
  const MessageKey message(counting_key().data(), rfc_nonce, nonce_len);
  const Secret<State> state = message.state(1);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(state->words[i], rfc_state.words[i]) << i;
}

// The draft, section 2.3.
TEST(ChaCha, AMessageOfXChaCha20HasDerivedKeyAndNonce) {
  std::uint8_t nonce[extended_nonce_len];
  for (std::size_t i = 0; i < sizeof nonce; ++i) nonce[i] = static_cast<std::uint8_t>(0x40 + i);
  std::uint8_t key[key_len];
  derive_key(counting_key().data(), nonce, key);
  constexpr std::uint8_t rest[nonce_len] = {0, 0, 0, 0, 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57};
  const State expected = make_state(key, 7, rest);
  const MessageKey message(counting_key().data(), nonce, sizeof nonce);
  const Secret<State> state = message.state(7);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(state->words[i], expected.words[i]) << i;
}

}  // namespace
}  // namespace warpcipher::chacha
