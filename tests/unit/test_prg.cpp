// SPDX-License-Identifier: Apache-2.0
// Generators: all vector code that this processor can run, against the definition. tests/python/prg has the vectors.
#include <gtest/gtest.h>

#include "prg/lanes.hpp"
#include "support.hpp"

namespace warpcipher::prg {
namespace {

using Bytes = warpcipher::test::Bytes;

constexpr Generator generators[] = {Generator::aes128_mmo, Generator::aes128_keyed, Generator::chacha20,
                                    Generator::chacha12,   Generator::chacha8,      Generator::aes128_half};

Bytes make_bytes(std::size_t size) {
  Bytes bytes(size);
  std::uint32_t state = 7;
  for (auto& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

constexpr std::size_t counts[] = {1, 3, 4, 15, 16, 17, 31, 33, 64, 65, 100};

TEST(PrgLanes, ExpandAsTheDefinition) {
  for (const Generator generator : generators) {
    for (const Code* const code : codes_of(generator)) {
      for (const std::size_t count : counts) {
        const Bytes seeds = make_bytes(16 * count + 1);
        for (int first = 0; first < most_children; ++first) {
          for (int children = 1; first + children <= most_children; ++children) {
            Bytes expected(16 * count * static_cast<std::size_t>(children) + 2, 0xa5), found = expected;
            definition.expand(generator, seeds.data() + 1, count, first, children, expected.data() + 1);
            code->expand(generator, seeds.data() + 1, count, first, children, found.data() + 1);
            ASSERT_EQ(found, expected) << static_cast<int>(generator) << " " << count << " " << first << children;
          }
        }
      }
    }
  }
}

TEST(PrgLanes, OneChildMayReplaceItsSeed) {
  for (const Generator generator : generators) {
    for (const Code* const code : codes_of(generator)) {
      Bytes seeds = make_bytes(16 * 77), expected(seeds.size());
      definition.expand(generator, seeds.data(), 77, 0, 1, expected.data());
      code->expand(generator, seeds.data(), 77, 0, 1, seeds.data());
      EXPECT_EQ(seeds, expected);
    }
  }
}

TEST(PrgLanes, GrowAndFinishAsTheDefinition) {
  LevelCorrection level{};
  LeafCorrection leaf{};
  const Bytes some = make_bytes(4 * block_len);
  std::copy_n(some.data(), 2 * block_len, level.children[0]);
  level.root_bit = leaf.root_bit = 1;
  std::copy_n(some.data() + 2 * block_len, 2 * block_len, leaf.blocks[0]);
  for (const Generator generator : generators) {
    for (const Code* const code : codes_of(generator)) {
      for (const std::size_t count : counts) {
        const Bytes nodes = make_bytes(16 * count + 1);
        Bytes expected(32 * count + 2, 0xa5), found = expected;
        definition.grow(generator, nodes.data() + 1, count, level, expected.data() + 1);
        code->grow(generator, nodes.data() + 1, count, level, found.data() + 1);
        ASSERT_EQ(found, expected) << static_cast<int>(generator) << " " << count;
        for (const prg::Group group : {prg::Group::gf2, prg::Group::u32, prg::Group::u64}) {
          for (const bool negative : {false, true}) {
            leaf.group = group;
            leaf.negative = negative;
            definition.finish(generator, nodes.data() + 1, count, leaf, expected.data() + 1);
            code->finish(generator, nodes.data() + 1, count, leaf, found.data() + 1);
            ASSERT_EQ(found, expected) << static_cast<int>(generator) << " " << static_cast<int>(group) << negative;
          }
        }
      }
    }
  }
}

TEST(PrgLanes, SumRecords) {
  const Bytes shares = make_bytes(8 * 300);
  for (const std::size_t len : {8, 40, 64, 72, 200}) {
    const Bytes table = make_bytes(300 * len);
    for (const prg::Group group : {prg::Group::gf2, prg::Group::u32, prg::Group::u64}) {
      Bytes expected(len);
      for (std::size_t at = 0; at < len; at += 4) {
        for (std::size_t i = 0; i < 300; ++i) {
          const std::uint32_t word = load_le32(&table[i * len + at]), sum = load_le32(&expected[at]);
          if (group == prg::Group::gf2 && (shares[i / 8] >> (i % 8) & 1) != 0) store_le32(&expected[at], sum ^ word);
          if (group == prg::Group::u32) store_le32(&expected[at], sum + word * load_le32(&shares[4 * i]));
          if (group == prg::Group::u64 && at % 8 == 0) {
            const std::uint64_t whole = load_le64(&table[i * len + at]) * load_le64(&shares[8 * i]);
            store_le64(&expected[at], load_le64(&expected[at]) + whole);
          }
        }
      }
      for (const Accumulate accumulate : accumulate_codes()) {
        Bytes found(len);
        accumulate(group, shares.data(), {table.data(), len, 300}, found.data());
        EXPECT_EQ(found, expected) << len << " " << static_cast<int>(group);
      }
    }
  }
}

}  // namespace
}  // namespace warpcipher::prg
