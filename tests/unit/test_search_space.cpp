// SPDX-License-Identifier: Apache-2.0
// Key templates, numbers, order of likelihood, and the test of a key.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <string>

#include "core/error.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search {
namespace {

using Bytes = std::vector<std::uint8_t>;

KeyNumber power(std::size_t exponent) { return KeyNumber(1) << exponent; }

KeyTemplate known_template(CipherId cipher, std::uint8_t known = 0xff) {
  KeyTemplate key_template;
  key_template.cipher = cipher;
  key_template.known.fill(known);
  for (std::size_t i = 0; i < max_key_len; ++i) key_template.value[i] = static_cast<std::uint8_t>(37 * i + 1);
  return key_template;
}

Bytes key_at(const KeySpace& space, const KeyNumber& number) {
  Bytes key(space.key_len());
  space.key_at(number, key.data());
  return key;
}

TEST(KeyNumberTest, CarriesBorrowsAndShifts) {
  const KeyNumber one(1);
  KeyNumber all;
  for (std::size_t i = 0; i < 256; ++i) all.set_bit(i);
  EXPECT_EQ(all + one, power(256));
  EXPECT_EQ(power(256) - one, all);
  EXPECT_EQ((power(256) >> 200), power(56));
  EXPECT_EQ((power(200) << 56), power(256));
  EXPECT_EQ((power(64) << 64) >> 128, one);
  EXPECT_LT(all, power(256));
  EXPECT_DOUBLE_EQ(power(256).to_double(), std::ldexp(1.0, 256));
}

TEST(FastestFirstTest, HoldsEachKeyBitOnceAndNoParity) {
  for (const CipherInfo& info : cipher_list) {
    const auto order = fastest_first(info.id);
    const std::set<std::uint16_t> bits(order.begin(), order.end());
    EXPECT_EQ(bits.size(), order.size()) << info.name;
    EXPECT_EQ(order.size(), is_aes(info.id) ? 8 * info.key_len : 7 * info.key_len) << info.name;
    EXPECT_TRUE(
        std::none_of(order.begin(), order.end(), [&](std::uint16_t bit) { return !is_aes(info.id) && bit % 8 == 7; }));
    EXPECT_LT(*bits.rbegin(), 8 * info.key_len);
  }
}

TEST(KeySpaceTest, NothingKnownGivesEveryKey) {
  for (const CipherInfo& info : cipher_list) {
    KeyTemplate key_template;
    key_template.cipher = info.id;
    const KeySpace space(key_template);
    const std::size_t bits = (is_aes(info.id) ? 8 : 7) * info.key_len;
    EXPECT_EQ(space.size(), power(bits));
    EXPECT_DOUBLE_EQ(space.log2_size(), static_cast<double>(bits));
    EXPECT_EQ(space.log2_equivalents(), is_aes(info.id) ? 0 : static_cast<int>(info.key_len));
    EXPECT_EQ(key_at(space, space.size() - 1), Bytes(info.key_len, is_aes(info.id) ? 0xff : 0xfe));
  }
}

TEST(KeySpaceTest, NumbersAreKeysBothWays) {
  std::mt19937_64 random(5);
  for (const CipherInfo& info : cipher_list) {
    for (int round = 0; round < 20; ++round) {
      KeyTemplate key_template = known_template(info.id);
      for (std::size_t i = 0; i < info.key_len; ++i) key_template.known[i] = static_cast<std::uint8_t>(random());
      if (round % 2 == 1) {
        for (const std::size_t byte : {std::size_t{3}, std::size_t{6}, std::size_t{0}}) {
          CandidateList list{byte, {}};
          for (unsigned value = 0; value < 100; ++value) {
            list.candidates.push_back({static_cast<std::uint8_t>(2 * value), static_cast<std::uint8_t>(random() % 30)});
          }
          key_template.lists.push_back(list);
        }
      }
      const KeySpace space(key_template);
      for (int i = 0; i < 20; ++i) {
        KeyNumber number;
        for (std::size_t bit = 0; power(bit + 1) <= space.size(); ++bit) {
          if (random() % 2 == 1) number.set_bit(bit);
        }
        const Bytes key = key_at(space, number);
        ASSERT_EQ(space.number_of(key.data()), number) << info.name;
        KeyCursor cursor(space, number);
        if (number + 1 < space.size()) {
          cursor.next();
          Bytes next(cursor.key(), cursor.key() + info.key_len);
          space.set_parity(next.data());
          ASSERT_EQ(next, key_at(space, number + 1)) << info.name;
        }
      }
    }
  }
}

TEST(KeySpaceTest, AlignedRangesHoldAllValuesOfTheFirstFreeBits) {
  KeyTemplate key_template = known_template(CipherId::des);
  key_template.known[2] = 0x0f;
  key_template.known[6] = 0xc3;
  const KeySpace space(key_template);
  ASSERT_EQ(space.free_bits().size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t bit = space.free_bits()[i];
    const Bytes zero = key_at(space, 0);
    const Bytes one = key_at(space, power(i));
    EXPECT_EQ((zero[bit / 8] ^ one[bit / 8]) & 0xfe, 0x80 >> bit % 8);
  }
}

TEST(KeySpaceTest, CandidatesComeInOrderOfLikelihoodEachOnce) {
  KeyTemplate key_template = known_template(CipherId::aes_128);
  key_template.known[9] = 0xfc;  // two free bits
  key_template.lists = {
      {12, {{7, 3}, {9, 0}, {200, 3}}}, {1, {{1, 2}, {2, 2}, {3, 0}, {4, 9}}}, {5, {{80, 0}, {81, 1}}}};
  const KeySpace space(key_template);
  ASSERT_EQ(space.size(), KeyNumber(24 * 4));  // combinations, values of the free bits
  const std::map<int, int> costs[3] = {
      {{3, 0}, {1, 2}, {2, 2}, {4, 9}}, {{80, 0}, {81, 1}}, {{9, 0}, {7, 3}, {200, 3}}};
  std::set<std::string> seen;
  int last = 0;
  KeyCursor cursor(space, 0);
  for (std::uint64_t n = 0; n < 96; ++n) {
    const Bytes key = key_at(space, n);
    ASSERT_EQ(key, Bytes(cursor.key(), cursor.key() + 16)) << n;
    cursor.next();
    const int cost = costs[0].at(key[1]) + costs[1].at(key[5]) + costs[2].at(key[12]);
    EXPECT_GE(cost, last) << n;
    last = cost;
    EXPECT_TRUE(seen.insert(std::string(key.begin(), key.end())).second) << n;
  }
  EXPECT_EQ(key_at(space, 0)[1], 3);
  EXPECT_EQ(last, 13);
}

TEST(KeySpaceTest, ListsOfAllBytesReachTwoToThe256) {
  KeyTemplate key_template = known_template(CipherId::aes_256);
  for (std::size_t byte = 0; byte < 32; ++byte) {
    CandidateList list{byte, {}};
    for (unsigned value = 0; value < 256; ++value) {
      list.candidates.push_back({static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(value / 32)});
    }
    key_template.lists.push_back(list);
  }
  const KeySpace space(key_template);
  EXPECT_EQ(space.size(), power(256));
  EXPECT_EQ(key_at(space, 0), Bytes(32, 0));
  EXPECT_EQ(key_at(space, power(256) - 1), Bytes(32, 255));
}

TEST(KeySpaceTest, ParityIsIgnoredAndSetOdd) {
  KeyTemplate key_template = known_template(CipherId::des);
  key_template.lists = {{0, {{0x41, 5}, {0x40, 2}, {0x62, 1}}}};
  const KeySpace space(key_template);
  EXPECT_EQ(space.size(), KeyNumber(2));
  EXPECT_EQ(space.lists()[0].candidates, (std::vector<Candidate>{{0x62, 1}, {0x40, 2}}));
  Bytes key = key_at(space, 1);
  EXPECT_EQ(key[0], 0x40);
  for (const std::uint8_t byte : key) EXPECT_EQ(std::popcount(byte) % 2, 1);
  for (std::uint8_t& byte : key) byte ^= 1;
  EXPECT_EQ(space.number_of(key.data()), KeyNumber(1));
  key[7] ^= 0x10;
  EXPECT_EQ(space.number_of(key.data()), std::nullopt);
}

TEST(KeySpaceTest, BadListsAreRefused) {
  KeyTemplate key_template = known_template(CipherId::des);
  for (const std::vector<CandidateList>& lists :
       {std::vector<CandidateList>{{8, {{0, 0}}}}, std::vector<CandidateList>{{1, {}}},
        std::vector<CandidateList>{{1, {{2, 0}, {2, 1}}}}, std::vector<CandidateList>{{1, {{2, 0}}}, {1, {{4, 0}}}}}) {
    key_template.lists = lists;
    EXPECT_THROW(KeySpace{key_template}, Error);
  }
}

BlockPair make_pair(CipherId cipher, const Bytes& key, std::uint8_t fill) {
  BlockPair pair;
  pair.in.fill(fill);
  pair.mask.fill(0xff);
  transform_block(cipher, key.data(), false, pair.in.data(), pair.expected.data());
  return pair;
}

TEST(KeyTestTest, KnownAnswers) {
  const Bytes aes_key{0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
  BlockPair pair;  // FIPS 197, appendix B
  pair.in = {0x32, 0x43, 0xf6, 0xa8, 0x88, 0x5a, 0x30, 0x8d, 0x31, 0x31, 0x98, 0xa2, 0xe0, 0x37, 0x07, 0x34};
  pair.expected = {0x39, 0x25, 0x84, 0x1d, 0x02, 0xdc, 0x09, 0xfb, 0xdc, 0x11, 0x85, 0x97, 0x19, 0x6a, 0x0b, 0x32};
  pair.mask.fill(0xff);
  EXPECT_TRUE(KeyTest(CipherId::aes_128, std::span(&pair, 1)).passes(aes_key.data()));
  std::swap(pair.in, pair.expected);
  pair.decrypt = true;
  EXPECT_TRUE(KeyTest(CipherId::aes_128, std::span(&pair, 1)).passes(aes_key.data()));
  BlockPair des_pair;  // SP 800-17, appendix B, table 1
  des_pair.in = {0x80};
  des_pair.expected = {0x95, 0xf8, 0xa5, 0xe5, 0xdd, 0x31, 0xd9, 0x00};
  des_pair.mask.fill(0xff);
  const KeyTest test(CipherId::des, std::span(&des_pair, 1));
  EXPECT_EQ(test.bits(), 64);
  EXPECT_TRUE(test.passes(Bytes(8, 0x01).data()));
  EXPECT_TRUE(test.passes(Bytes(8, 0x00).data()));
  EXPECT_FALSE(test.passes(Bytes(8, 0x02).data()));
}

TEST(KeyTestTest, MasksDirectionsAndSeveralPairs) {
  std::mt19937 random(3);
  for (const CipherInfo& info : cipher_list) {
    Bytes key(info.key_len);
    for (auto& byte : key) byte = static_cast<std::uint8_t>(random());
    BlockPair weak = make_pair(info.id, key, 9);
    std::swap(weak.in, weak.expected);  // the ciphertext and a few bits of plaintext
    weak.decrypt = true;
    weak.mask = {0xf0, 0, 0x01};
    weak.expected[1] = 0x77;  // not compared
    const BlockPair pairs[] = {weak, make_pair(info.id, key, 1)};
    const KeyTest test(info.id, pairs);
    EXPECT_FALSE(test.pairs()[0].decrypt);
    EXPECT_EQ(test.first_bits(), static_cast<int>(8 * info.block_len));
    EXPECT_EQ(test.bits(), test.first_bits() + 5);
    EXPECT_TRUE(test.passes(key.data()));
    key[2] ^= 0x10;
    EXPECT_FALSE(test.passes(key.data()));
  }
  EXPECT_THROW(KeyTest(CipherId::des, {}), Error);
  const BlockPair empty;
  EXPECT_THROW(KeyTest(CipherId::des, std::span(&empty, 1)), Error);
}

TEST(ReferenceSearcherTest, FindsAllHitsInRangeAndNoOthers) {
  KeyTemplate key_template = known_template(CipherId::aes_128);
  key_template.known[4] = 0xf0;
  key_template.lists = {{11, {{1, 4}, {2, 0}, {3, 2}, {4, 4}}}};
  const auto space = std::make_shared<const KeySpace>(key_template);
  ASSERT_EQ(space->size(), KeyNumber(64));
  BlockPair pair = make_pair(CipherId::aes_128, key_at(*space, 37), 5);
  pair.mask = {0x03};  // false positives on purpose
  const auto test = std::make_shared<const KeyTest>(CipherId::aes_128, std::span(&pair, 1));
  std::vector<KeyNumber> expected;
  for (std::uint64_t n = 3; n < 61; ++n) {
    if (test->passes(key_at(*space, n).data())) expected.push_back(n);
  }
  EXPECT_GT(expected.size(), 4u);
  const auto task = find_searcher("reference").prepare(space, test, 0);
  std::vector<KeyNumber> hits;
  std::atomic<bool> cancel{false};
  EXPECT_EQ(task->run(3, 20, hits, cancel), 20u);
  EXPECT_EQ(task->run(23, 38, hits, cancel), 38u);
  EXPECT_EQ(hits, expected);
  EXPECT_NE(std::find(hits.begin(), hits.end(), KeyNumber(37)), hits.end());
  cancel = true;
  EXPECT_EQ(task->run(0, 64, hits, cancel), 0u);
  EXPECT_EQ(hits, expected);
}

TEST(SearcherListTest, NamesAreDistinctAndUnknownOnesRefused) {
  std::set<std::string_view> names;
  for (const Searcher* searcher : searchers()) {
    EXPECT_TRUE(names.insert(searcher->name()).second);
    EXPECT_FALSE(searcher->description().empty());
    EXPECT_EQ(searcher->devices().empty(), !searcher->unavailable_reason().empty());
  }
  EXPECT_EQ(&find_searcher("reference"), searchers().back());
  EXPECT_THROW(find_searcher("abacus"), Error);
}

}  // namespace
}  // namespace warpcipher::search
