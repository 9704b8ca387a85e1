// SPDX-License-Identifier: Apache-2.0
// check_messages refuses what cannot be right, and says what was given and what was expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "message_support.hpp"

namespace warpcipher {
namespace {

using namespace test;

TEST(CheckMessages, AcceptsEveryAlgorithm) {
  std::mt19937 random(1);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const std::size_t len : {0u, 1u, 15u, 16u, 17u, 1000u}) {
        const Sample sample(random, algorithm, direction, test::valid_len(algorithm, len));
        EXPECT_EQ(refusal({&sample.message, 1}), "accepted") << algorithm.name;
      }
    }
  }
}

TEST(CheckMessages, RefusesWrongIvs) {
  expect_says(refusal_of("aes-128-cbc", 16, [](Message& m) { m.iv_len = 15; }), {"16 bytes", "15 bytes"});
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.iv_len = 0; }), {"16 bytes", "none"});
  expect_says(refusal_of("des-ofb", 16, [](Message& m) { m.iv_len = 16; }), {"8 bytes", "16 bytes"});
  expect_says(refusal_of("aes-256-gcm", 16, [](Message& m) { m.iv_len = 0; }), {"1 byte or more"});
  expect_says(refusal_of("aes-128-ecb", 16, [](Message& m) { m.iv = m.in, m.iv_len = 16; }), {"takes no IV"});
}

TEST(CheckMessages, RefusesWrongLengths) {
  expect_says(refusal_of("aes-128-cbc", 16, [](Message& m) { m.in_len = 15; }), {"multiple of 16", "15 bytes"});
  expect_says(refusal_of("des-ecb", 16, [](Message& m) { m.in_len = 12; }), {"multiple of 8", "12 bytes"});
  expect_says(refusal_of("aes-128-xts", 16, [](Message& m) { m.in_len = 15; }), {"data unit", "15 bytes"});
  expect_says(refusal_of("aes-128-xts", 16, [](Message& m) { m.in_len = m.out_len = (16u << 20) + 1; }), {"16777217"});
  expect_says(refusal_of("aes-128-gcm", 16, [](Message& m) { m.in_len = m.out_len = (1ull << 36) - 31; }),
              {"at most 68719476704"});
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.out_len = 15; }), {"room for 15", "16 bytes"});
  expect_says(refusal_of("aes-128-cbc", 16, [](Message& m) { m.padding = Padding::pkcs7, m.out_len = 31; }),
              {"room for 31", "32 bytes"});
  expect_says(
      refusal_of("aes-128-cbc", 16,
                 [](Message& m) { m.padding = Padding::pkcs7, m.direction = Direction::decrypt, m.in_len = 0; }),
      {"at least 16"});
}

TEST(CheckMessages, RefusesWhatTheModeDoesNotHave) {
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.padding = Padding::pkcs7; }), {"takes no padding"});
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.aad = m.iv, m.aad_len = 1; }), {"associated data"});
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.tag = m.out + 16, m.tag_len = 16; }), {"no tag"});
  for (const std::size_t tag_len : {0u, 1u, 5u, 11u, 17u}) {
    expect_says(refusal_of("aes-128-gcm", 16, [=](Message& m) { m.tag_len = tag_len; }), {"4, 8 or 12 to 16"});
  }
}

TEST(CheckMessages, RefusesNullPointersAndOverlap) {
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.in = nullptr; }), {"in is a null pointer"});
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.out = nullptr; }), {"out is a null pointer"});
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.key = nullptr; }), {"key is missing"});
  expect_says(refusal_of("aes-128-ctr", 16, [](Message& m) { m.in = m.out + 1; }), {"overlap"});
  expect_says(refusal_of("aes-128-gcm", 32, [](Message& m) { m.tag = m.out + 8; }), {"tag overlaps"});
  expect_says(refusal_of("aes-128-ctr", 32, [](Message& m) { m.iv = m.out + 31; }), {"IV overlaps"});
  expect_says(refusal_of("aes-128-gcm", 32, [](Message& m) { m.aad = m.out, m.aad_len = 1; }), {"AAD overlaps"});
  EXPECT_EQ(refusal_of("aes-128-ctr", 16, [](Message& m) { m.in = m.out; }), "accepted");
  EXPECT_EQ(refusal_of("aes-128-gcm", 0, [](Message& m) { m.in = nullptr, m.out = nullptr; }), "accepted");
}

TEST(CheckMessages, RefusesMessagesInEachOthersWay) {
  std::mt19937 random(5);
  Sample a(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 100);
  Sample b(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 100);
  const auto both = [&](const std::function<void(Message&, Message&)>& change) {
    Message messages[] = {a.message, b.message};
    change(messages[0], messages[1]);
    const std::string straight = refusal(messages);
    std::swap(messages[0], messages[1]);
    EXPECT_EQ(refusal(messages) == "accepted", straight == "accepted");
    return straight;
  };
  EXPECT_EQ(both([](Message&, Message&) {}), "accepted");
  EXPECT_EQ(both([](Message& x, Message& y) { y.in = x.in; }), "accepted");
  EXPECT_EQ(both([](Message& x, Message& y) { x.in = x.out, y.in = y.out; }), "accepted");
  expect_says(both([](Message& x, Message& y) { y.in = x.out; }), {"message 1 reads where message 0 writes"});
  expect_says(both([](Message& x, Message& y) { y.in = x.tag + 15 - 99, y.in_len = 100; }), {"reads where"});
  expect_says(both([](Message& x, Message& y) { y.out = x.out + 99; }), {"writes where", "an output of its own"});
  EXPECT_EQ(both([](Message& x, Message& y) { y.out = x.out + 100, y.in_len = 0; }), "accepted");
}

TEST(CheckMessages, RefusesANonceUsedTwiceToEncrypt) {
  std::mt19937 random(3);
  std::deque<Sample> samples;
  std::vector<Message> messages;
  for (int i = 0; i < 50; ++i) {
    samples.emplace_back(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 20);
    messages.push_back(samples.back().message);
    messages.back().key = samples.front().key.get();
  }
  EXPECT_EQ(refusal(messages), "accepted");
  messages[37].iv = messages[11].iv;
  expect_says(refusal(messages), {"messages 11 and 37", "never be used twice"});
  messages[37].key = samples[37].key.get();
  EXPECT_EQ(refusal(messages), "accepted");
  const Key same_bytes(messages[11].algorithm(), {messages[11].key->bytes(), messages[11].key->size()});
  messages[37].key = &same_bytes;
  expect_says(refusal(messages), {"messages 11 and 37", "never be used twice"});
  messages[37].key = messages[11].key;
  messages[37].direction = messages[11].direction = Direction::decrypt;
  EXPECT_EQ(refusal(messages), "accepted");
}

// As many keys as messages, and one nonce for all of them: allowed, and no slower than nonces that differ.
TEST(CheckMessages, LetsOneNonceGoWithManyKeys) {
  constexpr std::size_t count = 3000;
  std::mt19937 random(5);
  const Sample sample(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 0);
  std::deque<Key> keys;
  std::vector<std::array<std::uint8_t, 16>> tags(count);
  std::vector<Message> messages(count, sample.message);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t bytes[16] = {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 8)};
    messages[i].key = &keys.emplace_back(sample.message.algorithm(), bytes);
    messages[i].tag = tags[i].data();
    messages[i].tag_len = 16;
  }
  EXPECT_EQ(refusal(messages), "accepted");
  messages[2999].key = messages[1234].key;
  expect_says(refusal(messages), {"messages 1234 and 2999", "never be used twice"});
}

// Nonces of every length, the ends of one another: none is taken for another, and each is found when it comes again.
TEST(CheckMessages, TellsNoncesOfAllLengthsApart) {
  constexpr std::size_t longest = 40;
  std::mt19937 random(6);
  const Sample sample(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 0);
  const std::uint8_t zeros[longest] = {};
  std::vector<std::array<std::uint8_t, 16>> tags(longest + 1);
  std::vector<Message> messages(longest, sample.message);
  for (std::size_t i = 0; i < longest; ++i) {
    messages[i].iv = zeros;
    messages[i].iv_len = i + 1;
    messages[i].tag = tags[i].data();
    messages[i].tag_len = 16;
  }
  EXPECT_EQ(refusal(messages), "accepted");
  for (std::size_t i = 0; i < longest; ++i) {
    messages.push_back(messages[i]);
    messages.back().tag = tags.back().data();
    const std::string names = "messages " + std::to_string(i) + " and 40";
    expect_says(refusal(messages), {names.c_str()});
    messages.pop_back();
  }
}

// Ranges in a small buffer, in order and not, against the definition.
TEST(CheckMessages, FindsEveryOverlapBetweenMessages) {
  std::mt19937 random(7);
  const Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 0);
  std::vector<std::uint8_t> buffer(64);
  const auto meet = [](const std::uint8_t* a, std::size_t n, const std::uint8_t* b, std::size_t m) {
    return n != 0 && m != 0 && a < b + m && b < a + n;
  };
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<Message> messages(2 + random() % 4, sample.message);
    for (Message& m : messages) {
      m.in_len = m.out_len = random() % 8;
      m.in = buffer.data() + random() % 57;
      m.out = random() % 2 != 0 ? const_cast<std::uint8_t*>(m.in) : buffer.data() + random() % 57;
      if (m.in != m.out && meet(m.in, m.in_len, m.out, m.in_len)) m.out = const_cast<std::uint8_t*>(m.in);
    }
    if (random() % 2 != 0) {
      std::sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) { return a.in < b.in; });
    }
    bool overlap = false;
    for (const Message& a : messages) {
      for (const Message& b : messages) {
        if (&a == &b) continue;
        overlap = overlap || meet(a.out, a.in_len, b.out, b.in_len) || meet(a.out, a.in_len, b.in, b.in_len);
      }
    }
    refused += overlap;
    EXPECT_EQ(refusal(messages) != "accepted", overlap);
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 3500);
}

// Many messages are looked at by several cores, each some: neighbours of two cores may meet.
TEST(CheckMessages, FindsAnOverlapAmongManyMessages) {
  constexpr std::size_t count = 20000, len = 32;
  std::mt19937 random(9);
  const Sample sample(random, find_algorithm("aes-256-xts"), Direction::encrypt, len);
  std::vector<std::uint8_t> in(count * len), out(count * len);
  for (const bool in_place : {false, true}) {
    std::vector<Message> messages(count, sample.message);
    for (std::size_t i = 0; i < count; ++i) {
      messages[i].in = in.data() + i * len;
      messages[i].out = in_place ? in.data() + i * len : out.data() + i * len;
      messages[i].out_len = len;
    }
    EXPECT_EQ(refusal(messages), "accepted");
    for (const std::size_t i : {std::size_t{1}, std::size_t{8191}, std::size_t{8192}, count - 1}) {
      std::vector<Message> changed = messages;
      changed[i].out = changed[i - 1].out + 1;
      if (in_place) changed[i].in = changed[i].out;
      EXPECT_NE(refusal(changed), "accepted") << i;
      changed[i].out = const_cast<std::uint8_t*>(changed[i - 1].in);
      if (in_place) changed[i].in = changed[i].out;
      EXPECT_NE(refusal(changed), "accepted") << i;
    }
  }
}

// Tags too: they are written or read, right after a text or elsewhere.
TEST(CheckMessages, FindsEveryOverlapBetweenTagsAndTexts) {
  struct Use {
    const std::uint8_t* data;
    std::size_t len;
    bool writes;
  };
  std::mt19937 random(8);
  const Sample sample(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 0);
  std::vector<std::uint8_t> buffer(256);
  std::vector<std::uint8_t> ivs(12 * 4);
  const auto meet = [](const Use& a, const Use& b) {
    return a.len != 0 && b.len != 0 && a.data < b.data + b.len && b.data < a.data + a.len;
  };
  int refused = 0, accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<Message> messages(2 + random() % 3, sample.message);
    std::vector<std::vector<Use>> uses;
    const bool in_order = random() % 2 != 0;
    std::size_t next = 0;
    for (Message& m : messages) {
      m.iv = &ivs[12 * uses.size()];
      ivs[12 * uses.size()] = static_cast<std::uint8_t>(uses.size());
      const auto place = [&](std::size_t len) {
        const std::size_t at = in_order ? next : random() % 230;
        next += len + random() % 3;
        if (in_order && random() % 32 == 0) next -= 1;
        return buffer.data() + std::min<std::size_t>(at, 230);
      };
      m.direction = random() % 2 != 0 ? Direction::encrypt : Direction::decrypt;
      m.in_len = m.out_len = random() % 8;
      m.tag_len = 4;
      m.in = place(m.in_len);
      m.out = random() % 2 != 0 ? const_cast<std::uint8_t*>(m.in) : place(m.in_len);
      m.tag = place(m.tag_len);
      const bool seals = m.direction == Direction::encrypt;
      if (random() % 2 != 0) m.tag = seals ? m.out + m.out_len : const_cast<std::uint8_t*>(m.in) + m.in_len;
      uses.push_back({{m.in, m.in_len, false}, {m.out, m.in_len, true}, {m.tag, m.tag_len, seals}});
    }
    bool overlap = false;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& m = messages[i];
      overlap = overlap || (m.in != m.out && meet(uses[i][0], uses[i][1]));
      overlap = overlap || meet(uses[i][2], uses[i][0]) || meet(uses[i][2], uses[i][1]);
      for (std::size_t k = 0; k < i; ++k) {
        for (const Use& a : uses[i]) {
          for (const Use& b : uses[k]) overlap = overlap || ((a.writes || b.writes) && meet(a, b));
        }
      }
    }
    ++(overlap ? refused : accepted);
    EXPECT_EQ(refusal(messages) != "accepted", overlap);
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(accepted, 500);
}

TEST(CheckMessages, NamesTheMessage) {
  std::mt19937 random(4);
  const Sample good(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 16);
  Message bad = good.message;
  bad.iv_len = 3;
  const Message both[] = {good.message, bad};
  expect_says(refusal(both), {"message 1: "});
  bad = good.message;
  bad.memory = Memory::device;
  const Message mixed[] = {good.message, bad};
  expect_says(refusal(mixed), {"message 1", "separate batches"});
}

// Large batches are checked by all cores: it is the first message that is named, and what is wrong with it comes before
// what is wrong between messages.
TEST(CheckMessages, NamesTheFirstMessageOfALargeBatch) {
  constexpr std::size_t count = 20000;
  std::mt19937 random(8);
  const Sample sample(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 0);
  std::vector<std::array<std::uint8_t, 16>> tags(count), nonces(count);
  std::vector<Message> messages(count, sample.message);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(nonces[i].data(), &i, sizeof i);
    messages[i].iv = nonces[i].data();
    messages[i].iv_len = 12;
    messages[i].tag = tags[i].data();
    messages[i].tag_len = 16;
  }
  EXPECT_EQ(refusal(messages), "accepted");
  messages[19990].iv = messages[7].iv;
  expect_says(refusal(messages), {"messages 7 and 19990", "never be used twice"});
  messages[19980].tag = messages[3].tag;
  expect_says(refusal(messages), {"message 19980 ", "message 3 ", "writes where"});
  for (const std::size_t wrong : {19999u, 12345u, 2500u, 2499u}) {
    messages[wrong].tag_len = 3;
    expect_says(refusal(messages), {("message " + std::to_string(wrong) + ": ").c_str(), "tag of 4, 8 or 12"});
  }
}

TEST(Key, ChecksItsLengthAndXtsHalves) {
  const test::Bytes bytes(64, 5);
  const auto text = [&](const char* algorithm, std::size_t len) -> std::string {
    try {
      Key(find_algorithm(algorithm), {bytes.data(), len});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(text("aes-256-gcm", 32), "accepted");
  expect_says(text("aes-256-gcm", 31), {"32 bytes", "31"});
  expect_says(text("aes-128-xts", 16), {"32 bytes", "16"});
  expect_says(text("aes-128-xts", 32), {"halves", "equal"});
  expect_says(text("des", 8), {"unknown algorithm"});
}

TEST(FindAlgorithm, NamesTheNearest) {
  EXPECT_EQ(find_algorithm("aes-256-gcm").key_len(), 32u);
  try {
    find_algorithm("aes-256-gmc");
    FAIL();
  } catch (const Error& error) {
    expect_says(error.what(), {"'aes-256-gmc'", "did you mean aes-256-gcm?"});
    EXPECT_EQ(std::string_view(error.what()).find("des-ede3-ofb"), std::string_view::npos);
  }
  EXPECT_EQ(&find_algorithm("AES_256_GCM"), &find_algorithm("aes-256-gcm"));
  EXPECT_EQ(&find_algorithm("aes256gcm"), &find_algorithm("aes-256-gcm"));
}

}  // namespace
}  // namespace warpcipher
