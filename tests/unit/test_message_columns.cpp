// SPDX-License-Identifier: Apache-2.0
// Messages made columns: what is taken over, in which order, and what is left to the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "message/to_columns.hpp"

namespace warpcipher {
namespace {

// Messages of device memory that is never looked at.
class Texts {
 public:
  Texts(const char* algorithm, Direction direction, std::size_t count, std::size_t keys)
      : algorithm_(find_algorithm(algorithm)), memory_(count * 200), ivs_(count * 16), aad_(count * 8) {
    std::mt19937 random(1);
    for (auto& byte : ivs_) byte = static_cast<std::uint8_t>(random());
    for (auto& byte : aad_) byte = static_cast<std::uint8_t>(random());
    for (std::size_t k = 0; k < keys; ++k) {
      std::vector<std::uint8_t> bytes(algorithm_.key_len());
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
      keys_.emplace_back(algorithm_, bytes);
    }
    for (std::size_t i = 0; i < count; ++i) {
      Message m;
      m.key = &keys_[i % keys];
      m.direction = direction;
      m.memory = Memory::device;
      m.in = memory_.data() + 200 * i;
      m.out = memory_.data() + 200 * i + 100;
      m.in_len = m.out_len = 16 * (random() % 5);
      m.iv = ivs_.data() + 16 * i;
      m.iv_len = algorithm_.is_aead() ? 12 : 16;
      if (algorithm_.is_aead()) {
        m.tag = (direction == Direction::encrypt ? m.out : const_cast<std::uint8_t*>(m.in)) + m.in_len;
        m.tag_len = 16;
        m.aad = aad_.data() + 8 * i;
        m.aad_len = random() % 9;
      }
      messages.push_back(m);
    }
  }

  std::vector<Message> messages;

 private:
  const Algorithm& algorithm_;
  std::vector<std::uint8_t> memory_, ivs_, aad_;
  std::deque<Key> keys_;
};

void expect_same(const std::vector<Message>& messages, const MessageColumns& made) {
  const Columns c = made.columns();
  ASSERT_EQ(c.count, messages.size());
  EXPECT_TRUE(c.scattered);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[made.order().empty() ? i : made.order()[i]];
    const bool decrypts = m.direction == Direction::decrypt;
    EXPECT_EQ(c.in.data() + c.in_offsets[i], m.in);
    EXPECT_EQ(c.out.data() + c.out_offsets[i], m.out);
    EXPECT_EQ(c.in_lengths[i], m.in_len + (decrypts ? m.tag_len : 0));
    EXPECT_LE(c.in_offsets[i] + c.in_lengths[i], c.in.size());
    EXPECT_LE(c.out_offsets[i] + m.in_len + (decrypts ? 0 : m.tag_len), c.out.size());
    EXPECT_TRUE(std::equal(m.iv, m.iv + m.iv_len, c.ivs.data() + c.iv_len * i));
    EXPECT_EQ(c.keys[c.key_index.empty() ? 0 : c.key_index[i]], m.key);
    const std::size_t aad_len = c.aad_lengths.empty() ? c.aad.size() : c.aad_lengths[i];
    ASSERT_EQ(aad_len, m.aad_len);
    const std::uint8_t* const aad = c.aad.data() + (c.aad_offsets.empty() ? 0 : c.aad_offsets[i]);
    EXPECT_TRUE(std::equal(m.aad, m.aad + m.aad_len, aad));
  }
}

TEST(MessageColumns, TakeOverEveryMessage) {
  for (const char* algorithm : {"aes-256-gcm", "aes-128-ctr", "aes-128-cbc"}) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const std::size_t keys : {std::size_t{1}, std::size_t{3}, std::size_t{5000}}) {
        const Texts texts(algorithm, direction, 10000, keys);
        const auto made = MessageColumns::make(texts.messages);
        ASSERT_TRUE(made.has_value());
        EXPECT_TRUE(made->order().empty());
        expect_same(texts.messages, *made);
      }
    }
  }
}

TEST(MessageColumns, SortsRowsByOutput) {
  Texts texts("aes-256-gcm", Direction::encrypt, 9000, 2);
  std::shuffle(texts.messages.begin(), texts.messages.end(), std::mt19937(2));
  const auto made = MessageColumns::make(texts.messages);
  ASSERT_TRUE(made.has_value());
  ASSERT_EQ(made->order().size(), texts.messages.size());
  expect_same(texts.messages, *made);
  const Columns c = made->columns();
  EXPECT_TRUE(std::is_sorted(c.out_offsets.begin(), c.out_offsets.end()));
}

TEST(MessageColumns, HasOneAadForAll) {
  Texts texts("aes-256-gcm", Direction::encrypt, 600, 1);
  for (Message& m : texts.messages) {
    m.aad = texts.messages[0].aad;
    m.aad_len = 5;
  }
  const auto made = MessageColumns::make(texts.messages);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->columns().aad.data(), texts.messages[0].aad);
  EXPECT_TRUE(made->columns().aad_offsets.empty());
  expect_same(texts.messages, *made);
}

TEST(MessageColumns, LeavesToTheHostWhatColumnsCannotSay) {
  static const Texts others("aes-128-gcm", Direction::encrypt, 1, 1);
  const std::vector<void (*)(Message&)> changes{
      [](Message& m) { m.key = nullptr; },
      [](Message& m) { m.key = others.messages[0].key; },
      [](Message& m) { m.direction = Direction::decrypt; },
      [](Message& m) { m.memory = Memory::host; },
      [](Message& m) { m.iv_len = 11; },
      [](Message& m) { m.tag_len = 12; },
      [](Message& m) { ++m.tag; },
      [](Message& m) { m.compute_tag = true; },
      [](Message& m) { m.out_len = m.in_len - 1; },
      [](Message& m) { m.in = nullptr; },
      [](Message& m) { m.in_len = SIZE_MAX - 20; },
      [](Message& m) { m.padding = Padding::pkcs7; },
  };
  for (std::size_t number = 0; number < changes.size(); ++number) {
    for (const std::size_t at : {std::size_t{1}, std::size_t{7001}}) {
      Texts texts("aes-256-gcm", Direction::encrypt, 9000, 1);
      Message& m = texts.messages[at];
      m.in_len = m.out_len = 32;
      m.tag = m.out + 32;
      changes[number](m);
      EXPECT_FALSE(MessageColumns::make(texts.messages).has_value()) << "change " << number << " at " << at;
    }
  }
}

}  // namespace
}  // namespace warpcipher
