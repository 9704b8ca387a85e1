// SPDX-License-Identifier: Apache-2.0
// The CPU engine's bitsliced DES against the obvious form: every instruction set this processor has, every key length,
// both directions, block counts that fill the lanes and that do not, in place and not, misaligned.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "cipher/des.hpp"
#include "core/error.hpp"
#include "engine/cpu/des.hpp"

namespace warpcipher::cpu {
namespace {

using Bytes = std::vector<std::uint8_t>;

class CpuDesTest : public ::testing::TestWithParam<const DesLanes*> {
 protected:
  Bytes random_bytes(std::size_t size) {
    Bytes bytes(size);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random_()); });
    return bytes;
  }

  std::vector<std::size_t> block_counts(std::size_t lanes) {
    std::vector<std::size_t> counts{0, 1, 2, lanes - 1, lanes, lanes + 1, 3 * lanes};
    for (int i = 0; i < 3; ++i) counts.push_back(random_() % (5 * lanes));
    return counts;
  }

  static void expect_block(const std::uint8_t* key, std::size_t key_len, bool decrypt, const std::uint8_t* in,
                           std::uint8_t* out) {
    const des::reference::Schedule schedule = des::reference::expand_key(key, key_len);
    if (decrypt) {
      des::reference::decrypt_block(schedule, in, out);
    } else {
      des::reference::encrypt_block(schedule, in, out);
    }
  }

  std::mt19937 random_{11};
};

constexpr std::size_t key_lens[] = {8, 16, 24};

TEST_P(CpuDesTest, OneKeyEqualsTheObviousForm) {
  for (const std::size_t key_len : key_lens) {
    for (const bool decrypt : {false, true}) {
      const Bytes key = random_bytes(key_len);
      const DesSchedule schedule(key.data(), key_len, decrypt, *GetParam());
      ASSERT_EQ(schedule.lanes(), GetParam()->lanes);
      for (const std::size_t blocks : block_counts(schedule.lanes())) {
        SCOPED_TRACE(std::to_string(blocks) + " blocks, key of " + std::to_string(key_len));
        const Bytes in = random_bytes(8 * blocks);
        Bytes expected(in.size());
        for (std::size_t i = 0; i < blocks; ++i) {
          expect_block(key.data(), key_len, decrypt, in.data() + 8 * i, expected.data() + 8 * i);
        }
        // One byte off any alignment, with a byte after the end that must stay.
        Bytes shifted(in.size() + 2, 0xa5);
        std::copy(in.begin(), in.end(), shifted.begin() + 1);
        Bytes out(in.size() + 2, 0x5a);
        schedule.transform_ecb(shifted.data() + 1, out.data() + 1, blocks);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin() + 1));
        EXPECT_EQ(out.front(), 0x5a);
        EXPECT_EQ(out.back(), 0x5a);
        schedule.transform_ecb(shifted.data() + 1, shifted.data() + 1, blocks);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), shifted.begin() + 1));
        EXPECT_EQ(shifted.front(), 0xa5);
        EXPECT_EQ(shifted.back(), 0xa5);
      }
    }
  }
}

TEST_P(CpuDesTest, AKeyForEachBlockEqualsTheObviousForm) {
  for (const std::size_t key_len : key_lens) {
    for (const bool decrypt : {false, true}) {
      for (const std::size_t count : block_counts(GetParam()->lanes)) {
        SCOPED_TRACE(std::to_string(count) + " keys of " + std::to_string(key_len));
        std::vector<Bytes> keys;
        std::vector<const std::uint8_t*> pointers;
        for (std::size_t i = 0; i < count; ++i) keys.push_back(random_bytes(key_len));
        for (const Bytes& key : keys) pointers.push_back(key.data());
        const DesKeyedLanes keyed(pointers.data(), count, key_len, decrypt, *GetParam());
        ASSERT_EQ(keyed.count(), count);
        for (const std::size_t blocks : {count, count / 2}) {  // messages that have ended drop off the end
          const Bytes in = random_bytes(8 * blocks);
          Bytes expected(in.size());
          for (std::size_t i = 0; i < blocks; ++i) {
            expect_block(pointers[i], key_len, decrypt, in.data() + 8 * i, expected.data() + 8 * i);
          }
          Bytes out(in.size() + 1, 0x5a);
          keyed.transform(in.data(), out.data(), blocks);
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin()));
          EXPECT_EQ(out.back(), 0x5a);
          Bytes in_place = in;
          keyed.transform(in_place.data(), in_place.data(), blocks);
          EXPECT_EQ(in_place, expected);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, CpuDesTest,
                         ::testing::ValuesIn(des_lanes_list().begin(), des_lanes_list().end()),
                         [](const auto& set) { return std::string(set.param->name); });

TEST(CpuDesListTest, TheWidestComesFirstAndTheBaselineIsThere) {
  const auto list = des_lanes_list();
  ASSERT_FALSE(list.empty());
  EXPECT_STREQ(list.back()->name, "baseline");
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end(),
                             [](const DesLanes* a, const DesLanes* b) { return a->lanes > b->lanes; }));
  const std::array<std::uint8_t, 8> key{};
  EXPECT_EQ(DesSchedule(key.data(), 8, false).lanes(), list.front()->lanes);
}

TEST(CpuDesErrorTest, WrongLengthsAreRefused) {
  const std::array<std::uint8_t, 32> key{};
  const std::uint8_t* pointers[] = {key.data()};
  for (const std::size_t key_len : {std::size_t{0}, std::size_t{7}, std::size_t{9}, std::size_t{17}, std::size_t{32}}) {
    EXPECT_THROW(DesSchedule(key.data(), key_len, false), Error) << key_len;
    EXPECT_THROW(DesKeyedLanes(pointers, 1, key_len, false), Error) << key_len;
  }
  const DesKeyedLanes keyed(pointers, 1, 8, false);
  std::array<std::uint8_t, 16> blocks{};
  EXPECT_THROW(keyed.transform(blocks.data(), blocks.data(), 2), Error);
  EXPECT_EQ(blocks, (std::array<std::uint8_t, 16>{}));
}

}  // namespace
}  // namespace warpcipher::cpu
