// SPDX-License-Identifier: Apache-2.0
// AES: FIPS 197's appendices on each form, then each fast form against the obvious one on random keys and blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <vector>

#include "cipher/aes.hpp"
#include "cipher/aes_reference.hpp"
#include "cipher/aes_tables.hpp"

namespace warpcipher::aes {
namespace {

using Block = std::array<std::uint8_t, 16>;

std::vector<std::uint8_t> from_hex(std::string_view hex) {
  std::vector<std::uint8_t> bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  }
  return bytes;
}

Block block_from_hex(std::string_view hex) {
  Block block{};
  const std::vector<std::uint8_t> bytes = from_hex(hex);
  std::copy(bytes.begin(), bytes.end(), block.begin());
  return block;
}

struct KnownAnswer {
  std::string_view source;
  std::string_view key;
  std::string_view plaintext;
  std::string_view ciphertext;
};

constexpr KnownAnswer known_answers[] = {
    {"FIPS 197, appendix B", "2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
     "3925841d02dc09fbdc118597196a0b32"},
    {"FIPS 197, appendix C.1", "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
     "69c4e0d86a7b0430d8cdb78070b4c55a"},
    {"FIPS 197, appendix C.2", "000102030405060708090a0b0c0d0e0f1011121314151617", "00112233445566778899aabbccddeeff",
     "dda97ca4864cdfe06eaf70a0ec0d7191"},
    {"FIPS 197, appendix C.3", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
     "00112233445566778899aabbccddeeff", "8ea2b7ca516745bfeafc49904b496089"},
    {"SP 800-38A, F.1.1, block 1", "2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172a",
     "3ad77bb40d7a3660a89ecaf32466ef97"},
    {"SP 800-38A, F.1.3, block 1", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
     "6bc1bee22e409f96e93d7e117393172a", "bd334f1d6e45f25ff712a214571fa5cc"},
    {"SP 800-38A, F.1.5, block 1", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "6bc1bee22e409f96e93d7e117393172a", "f3eed1bdb5d2a03c064b5a7e3db181f8"},
};

TEST(AesTest, KnownAnswers) {
  for (const KnownAnswer& answer : known_answers) {
    SCOPED_TRACE(answer.source);
    const auto key = from_hex(answer.key);
    const Block plaintext = block_from_hex(answer.plaintext);
    const Block ciphertext = block_from_hex(answer.ciphertext);
    Block out{};
    encrypt_block(expand_key(key.data(), key.size()), plaintext.data(), out.data());
    EXPECT_EQ(out, ciphertext);
    decrypt_block(expand_decryption_key(key.data(), key.size()), ciphertext.data(), out.data());
    EXPECT_EQ(out, plaintext);
    reference::encrypt_block(reference::expand_key(key.data(), key.size()), plaintext.data(), out.data());
    EXPECT_EQ(out, ciphertext);
    reference::decrypt_block(reference::expand_key(key.data(), key.size()), ciphertext.data(), out.data());
    EXPECT_EQ(out, plaintext);
  }
}

// FIPS 197, appendix A: the first derived words and the last of each schedule.
TEST(AesTest, KeyExpansionOfAppendixA) {
  const auto key128 = from_hex("2b7e151628aed2a6abf7158809cf4f3c");
  const Schedule schedule128 = expand_key(key128.data(), key128.size());
  EXPECT_EQ(schedule128.rounds, 10);
  EXPECT_EQ(schedule128.words[4], 0xa0fafe17u);
  EXPECT_EQ(schedule128.words[7], 0x2a6c7605u);
  EXPECT_EQ(schedule128.words[36], 0xac7766f3u);
  EXPECT_EQ(schedule128.words[43], 0xb6630ca6u);
  const auto key192 = from_hex("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b");
  const Schedule schedule192 = expand_key(key192.data(), key192.size());
  EXPECT_EQ(schedule192.rounds, 12);
  EXPECT_EQ(schedule192.words[6], 0xfe0c91f7u);
  EXPECT_EQ(schedule192.words[51], 0x01002202u);
  const auto key256 = from_hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
  const Schedule schedule256 = expand_key(key256.data(), key256.size());
  EXPECT_EQ(schedule256.rounds, 14);
  EXPECT_EQ(schedule256.words[8], 0x9ba35411u);
  EXPECT_EQ(schedule256.words[12], 0xa8b09c1au);
  EXPECT_EQ(schedule256.words[59], 0x706c631eu);
}

std::uint32_t rotate_left(std::uint32_t x, int n) { return n == 0 ? x : x << n | x >> (32 - n); }

std::uint32_t byte_of(std::uint32_t word, int n) { return word >> (8 * n) & 0xffu; }

// A round from the combined table on little-endian column words, as the lane-table kernels do it. `step`: which column
// row r comes from, r * step further on.
void table_rounds(std::array<std::uint32_t, 4>& state, const std::array<std::uint32_t, 256>& table,
                  const std::array<std::uint8_t, 256>& last, const std::uint32_t* words, int rounds, int step) {
  for (int c = 0; c < 4; ++c) state[static_cast<std::size_t>(c)] ^= words[c];
  for (int round = 1; round <= rounds; ++round) {
    std::array<std::uint32_t, 4> next{};
    for (int c = 0; c < 4; ++c) {
      std::uint32_t column = words[4 * round + c];
      for (int r = 0; r < 4; ++r) {
        const std::uint32_t x = byte_of(state[static_cast<std::size_t>((c + r * step) % 4)], r);
        column ^= round < rounds ? rotate_left(table[x], 8 * r) : std::uint32_t{last[x]} << (8 * r);
      }
      next[static_cast<std::size_t>(c)] = column;
    }
    state = next;
  }
}

Block table_transform(const Schedule& schedule, const Block& in, bool decrypt) {
  std::array<std::uint32_t, 60> words{};
  to_column_words(schedule, words.data());
  std::array<std::uint32_t, 4> state{};
  for (std::size_t c = 0; c < 4; ++c) state[c] = load_le32(in.data() + 4 * c);
  table_rounds(state, decrypt ? td0 : te0, decrypt ? inverse_sbox : sbox, words.data(), schedule.rounds,
               decrypt ? 3 : 1);
  Block out{};
  for (std::size_t c = 0; c < 4; ++c) store_le32(out.data() + 4 * c, state[c]);
  return out;
}

TEST(AesTest, EveryFormAgreesOnRandomInputs) {
  std::mt19937 random(1);
  const auto random_byte = [&] { return static_cast<std::uint8_t>(random()); };
  for (int i = 0; i < 600; ++i) {
    const std::size_t key_len = 16 + 8 * static_cast<std::size_t>(i % 3);
    std::array<std::uint8_t, 32> key{};
    std::generate(key.begin(), key.end(), random_byte);
    Block plaintext{};
    std::generate(plaintext.begin(), plaintext.end(), random_byte);
    const reference::Schedule obvious = reference::expand_key(key.data(), key_len);
    Block ciphertext{};
    reference::encrypt_block(obvious, plaintext.data(), ciphertext.data());

    const Schedule encryption = expand_key(key.data(), key_len);
    const Schedule decryption = expand_decryption_key(key.data(), key_len);
    for (int w = 0; w < 4 * (obvious.rounds + 1); ++w) {
      ASSERT_EQ(encryption.words[w], load_be32(obvious.bytes + 4 * w)) << "word " << w;
    }
    Block out = plaintext;
    encrypt_block(encryption, out.data(), out.data());  // in place
    ASSERT_EQ(out, ciphertext);
    decrypt_block(decryption, out.data(), out.data());
    ASSERT_EQ(out, plaintext);
    reference::decrypt_block(obvious, ciphertext.data(), out.data());
    ASSERT_EQ(out, plaintext);
    reference::encrypt_block(obvious, out.data(), out.data());
    ASSERT_EQ(out, ciphertext);
    ASSERT_EQ(table_transform(encryption, plaintext, false), ciphertext);
    ASSERT_EQ(table_transform(decryption, ciphertext, true), plaintext);
  }
}

TEST(AesTest, TableBytesAreWhatTheKernelsTakeFromThem) {
  for (std::size_t x = 0; x < 256; ++x) {
    EXPECT_EQ(byte_of(te0[x], 1), sbox[x]);
    EXPECT_EQ(byte_of(te0[x], 2), sbox[x]);
    EXPECT_EQ(byte_of(td0[x], 0) ^ byte_of(td0[x], 1) ^ byte_of(td0[x], 2) ^ byte_of(td0[x], 3), inverse_sbox[x]);
  }
}

}  // namespace
}  // namespace warpcipher::aes
