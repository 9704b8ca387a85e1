// SPDX-License-Identifier: Apache-2.0
// Every scanner that this machine can run, against the key planted and against the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "search/cpu/scanner.hpp"
#include "search/key_test.hpp"
#include "search/searcher.hpp"

namespace warpcipher::search {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Random {
  std::mt19937_64 engine;

  std::uint64_t below(std::uint64_t limit) { return engine() % limit; }
  Bytes bytes(std::size_t size) {
    Bytes all(size);
    for (std::uint8_t& byte : all) byte = static_cast<std::uint8_t>(engine());
    return all;
  }
};

// A template in which `unknown` bits of the bytes low to high - 1 are free.
KeyTemplate make_template(CipherId cipher, Random& random, std::size_t unknown, std::size_t low, std::size_t high) {
  KeyTemplate key_template;
  key_template.cipher = cipher;
  key_template.known.fill(0xff);
  const Bytes value = random.bytes(max_key_len);
  std::copy(value.begin(), value.end(), key_template.value.begin());
  for (std::size_t cleared = 0; cleared < unknown;) {
    const std::uint64_t bit = 8 * low + random.below(8 * (high - low));
    std::uint8_t& byte = key_template.known[bit / 8];
    const auto mask = static_cast<std::uint8_t>(0x80u >> bit % 8);
    const bool is_parity_bit = !is_aes(cipher) && bit % 8 == 7;
    if (is_parity_bit || (byte & mask) == 0) continue;
    byte = static_cast<std::uint8_t>(byte & ~mask);
    ++cleared;
  }
  return key_template;
}

std::vector<Bytes> masks(std::size_t block_len) {
  Bytes full(block_len, 0xff);
  Bytes partly(block_len, 0);
  partly[2] = 0x7f;
  partly[block_len - 1] = 0x13;
  return {full, partly};
}

BlockPair make_pair(CipherId cipher, const Bytes& key, Random& random, bool decrypt, const Bytes& mask) {
  BlockPair pair;
  pair.decrypt = decrypt;
  const Bytes in = random.bytes(cipher_info(cipher).block_len);
  std::copy(in.begin(), in.end(), pair.in.begin());
  std::copy(mask.begin(), mask.end(), pair.mask.begin());
  transform_block(cipher, key.data(), decrypt, pair.in.data(), pair.expected.data());
  return pair;
}

// All scanners find what the reference finds: in the whole space, and in a range whose ends are no multiples of
// anything.
void check(const cpu::SpacePointer& space, const cpu::TestPointer& test, const KeyNumber& planted) {
  const std::uint64_t size = space->size().low64();
  std::vector<KeyNumber> expected;
  std::atomic<bool> cancel{false};
  find_searcher("reference").prepare(space, test, 0)->run(0, size, expected, cancel);
  ASSERT_NE(std::find(expected.begin(), expected.end(), planted), expected.end());
  const std::uint64_t first = size / 5;
  const std::uint64_t count = std::max<std::uint64_t>(size / 2, 1);
  std::vector<KeyNumber> expected_part;
  std::copy_if(expected.begin(), expected.end(), std::back_inserter(expected_part),
               [&](const KeyNumber& n) { return n >= KeyNumber(first) && n < KeyNumber(first + count); });
  for (const auto& scanner : cpu::scanners(space, test)) {
    std::vector<KeyNumber> hits;
    scanner->run(0, size, hits);
    std::sort(hits.begin(), hits.end());
    EXPECT_EQ(hits, expected) << scanner->name();
    hits.clear();
    scanner->run(first, count, hits);
    std::sort(hits.begin(), hits.end());
    EXPECT_EQ(hits, expected_part) << scanner->name();
  }
}

void check_planted(const KeyTemplate& key_template, Random& random, bool decrypt, const Bytes& mask) {
  const auto space = std::make_shared<const KeySpace>(key_template);
  const std::uint64_t size = space->size().low64();
  for (const std::uint64_t number : {std::uint64_t{0}, size - 1, random.below(size)}) {
    Bytes key(space->key_len());
    space->key_at(number, key.data());
    const BlockPair pairs[] = {make_pair(key_template.cipher, key, random, decrypt, mask)};
    check(space, std::make_shared<const KeyTest>(key_template.cipher, pairs), number);
  }
}

class CpuSearch : public testing::TestWithParam<CipherInfo> {};

TEST_P(CpuSearch, FindsWhatTheReferenceFinds) {
  const CipherInfo& info = GetParam();
  Random random{std::mt19937_64(info.key_len)};
  for (const bool decrypt : {false, true}) {
    for (const Bytes& mask : masks(info.block_len)) {
      for (const std::size_t unknown : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
        check_planted(make_template(info.id, random, unknown, 0, info.key_len), random, decrypt, mask);
      }
    }
  }
}

TEST_P(CpuSearch, FindsKeysAmongCandidates) {
  const CipherInfo& info = GetParam();
  Random random{std::mt19937_64(info.key_len + 1)};
  for (const std::size_t unknown : {std::size_t{0}, std::size_t{2}}) {
    KeyTemplate key_template = make_template(info.id, random, unknown, 0, 2);
    for (const std::size_t byte : {std::size_t{3}, info.key_len - 1}) {
      CandidateList list{byte, {}};
      for (unsigned value = 0; value < 13; ++value) {
        list.candidates.push_back({static_cast<std::uint8_t>(2 * value), static_cast<std::uint8_t>(value % 3)});
      }
      key_template.lists.push_back(list);
    }
    check_planted(key_template, random, false, masks(info.block_len)[0]);
  }
}

std::string name_of(const testing::TestParamInfo<CipherInfo>& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ciphers, CpuSearch, testing::ValuesIn(cipher_list), name_of);

// Spaces of more than a block, with every key bit in the loop or among the lanes once: only the planted key is found.
TEST(CpuSearchBlocks, EveryLaneLoopAndKeyBit) {
  for (const CipherInfo& info : cipher_list) {
    Random random{std::mt19937_64(info.key_len + 2)};
    const std::size_t part = is_aes(info.id) ? info.key_len : 8;  // triple DES: one key, so that it strips
    for (std::size_t low = 0; low < info.key_len; low += part) {
      for (int round = 0; round < 4; ++round) {
        const std::size_t from = low + part / 4 * static_cast<std::size_t>(round);
        // Three of four rounds within few bytes, so that the loop bits are not the best ones.
        KeyTemplate key_template =
            make_template(info.id, random, 14, round < 3 ? from : low, round < 3 ? from + part / 4 + 1 : low + part);
        const auto space = std::make_shared<const KeySpace>(key_template);
        Bytes key(space->key_len());
        const KeyNumber planted = random.below(space->size().low64());
        space->key_at(planted, key.data());
        const BlockPair pairs[] = {make_pair(info.id, key, random, false, masks(info.block_len)[0])};
        const auto test = std::make_shared<const KeyTest>(info.id, pairs);
        auto scanners = cpu::scanners(space, test);
        scanners.pop_back();  // plain code: the tests above have it
        for (const auto& scanner : scanners) {
          std::vector<KeyNumber> hits;
          scanner->run(0, space->size().low64(), hits);
          EXPECT_EQ(hits, std::vector<KeyNumber>{planted}) << info.name << ' ' << scanner->name();
        }
      }
    }
  }
}

TEST(CpuSearchBlocks, EachLaneAndEachLoopValue) {
  for (const CipherId cipher : {CipherId::aes_128, CipherId::des}) {
    Random random{std::mt19937_64(11)};
    const KeyTemplate key_template = make_template(cipher, random, 15, 0, cipher_info(cipher).key_len);
    const auto space = std::make_shared<const KeySpace>(key_template);
    for (std::uint64_t i = 0; i < (cipher == CipherId::des ? 256u : 48u); ++i) {
      // Blocks of 2^6 loop values and up to 2^9 lanes, or 2^12 loop values and 2^2 to 2^4 lanes.
      const std::uint64_t planted =
          i % 2 << 14 | (cipher == CipherId::des ? i << 6 | i % 64 : i % 8 << 12 | (16 * i + 5));
      Bytes key(space->key_len());
      space->key_at(planted, key.data());
      const BlockPair pairs[] = {make_pair(cipher, key, random, false, masks(cipher_info(cipher).block_len)[0])};
      const auto test = std::make_shared<const KeyTest>(cipher, pairs);
      for (const auto& scanner :
           is_aes(cipher) ? cpu::aes_scanners(space, test) : cpu::des_meet_scanners(space, test)) {
        std::vector<KeyNumber> hits;
        scanner->run(planted, 1, hits);
        EXPECT_EQ(hits, std::vector<KeyNumber>{planted}) << scanner->name();
      }
    }
  }
}

TEST(CpuSearchTask, RunsAnyRangeOnAllCoresAndStops) {
  Random random{std::mt19937_64(1)};
  const auto space = std::make_shared<const KeySpace>(make_template(CipherId::des, random, 56, 0, 8));
  Bytes key(8);
  const KeyNumber planted = (KeyNumber(7) << 40) + 12345;
  space->key_at(planted, key.data());
  const BlockPair pairs[] = {make_pair(CipherId::des, key, random, false, Bytes(8, 0xff))};
  const auto test = std::make_shared<const KeyTest>(CipherId::des, pairs);
  const auto task = find_searcher("cpu").prepare(space, test, 0);
  EXPECT_EQ(task->preferred_count() & (task->preferred_count() - 1), 0u);
  std::vector<KeyNumber> hits;
  std::atomic<bool> cancel{false};
  EXPECT_EQ(task->run(planted - 12345, 12345, hits, cancel), 12345u);
  EXPECT_TRUE(hits.empty());
  EXPECT_EQ(task->run(planted - 12344, 12345, hits, cancel), 12345u);
  EXPECT_EQ(hits, std::vector<KeyNumber>{planted});
  cancel = true;
  EXPECT_EQ(task->run(planted, std::uint64_t{1} << 55, hits, cancel), 0u);
  EXPECT_EQ(hits.size(), 1u);
}

TEST(PeelTest, OnlyWhereAllButOneKeyIsKnown) {
  Random random{std::mt19937_64(2)};
  const auto strips = [&](CipherId cipher, std::size_t low, std::size_t high, bool decrypt, bool full) {
    const KeySpace space(make_template(cipher, random, 9, low, high));
    Bytes key(space.key_len());
    space.key_at(17, key.data());
    const BlockPair pairs[] = {make_pair(cipher, key, random, decrypt, masks(8)[full ? 0 : 1])};
    const auto stripped = strip_known_keys(space, KeyTest(cipher, pairs));
    if (!stripped) return false;
    Bytes part(8);
    stripped->space->key_at(17, part.data());
    EXPECT_EQ(part,
              Bytes(key.begin() + static_cast<std::ptrdiff_t>(low), key.begin() + static_cast<std::ptrdiff_t>(high)));
    EXPECT_TRUE(stripped->test->passes(part.data()));
    EXPECT_EQ(stripped->space->size(), space.size());
    return true;
  };
  EXPECT_FALSE(strips(CipherId::des, 0, 8, false, true));
  EXPECT_FALSE(strips(CipherId::des_ede2, 0, 8, false, true));
  EXPECT_TRUE(strips(CipherId::des_ede2, 8, 16, false, true));
  for (const std::size_t low : {std::size_t{0}, std::size_t{8}, std::size_t{16}}) {
    EXPECT_TRUE(strips(CipherId::des_ede3, low, low + 8, false, true));
    EXPECT_EQ(strips(CipherId::des_ede3, low, low + 8, false, false), low == 16);
    EXPECT_EQ(strips(CipherId::des_ede3, low, low + 8, true, false), low == 0);
  }
}

}  // namespace
}  // namespace warpcipher::search
