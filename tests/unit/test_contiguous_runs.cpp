// SPDX-License-Identifier: Apache-2.0
// Which messages are a contiguous run, and which runs are sectors (transfer/contiguous_runs.hpp).
#include <gtest/gtest.h>

#include "support.hpp"
#include "transfer/contiguous_runs.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t len = 64;

struct Memory {
  std::vector<std::uint8_t> in = std::vector<std::uint8_t>(1 << 20), out = in, ivs = in;
};

Message sector(const Key& key, Memory& memory, std::size_t i) {
  Message m;
  m.key = &key;
  m.in = memory.in.data() + i * len;
  m.out = memory.out.data() + i * len;
  m.in_len = m.out_len = len;
  m.iv = memory.ivs.data() + 16 * i;
  m.iv_len = 16;
  return m;
}

TEST(ContiguousRuns, SectorsAreAlikeAndContiguous) {
  Memory memory;
  const Key key(find_algorithm("aes-128-xts"), test::Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                                                           0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0});
  const Key same(find_algorithm("aes-128-xts"), {key.bytes(), key.size()});
  const Message first = sector(key, memory, 0), next = sector(key, memory, 1);
  EXPECT_TRUE(is_next_sector(first, next));
  const auto changed = [&](auto&& change) {
    Message m = next;
    change(m);
    return m;
  };
  const Message other_key = changed([&](Message& m) { m.key = &same; });
  EXPECT_TRUE(is_contiguous(first, other_key));
  EXPECT_FALSE(is_next_sector(first, other_key));
  const Message shorter = changed([](Message& m) { m.in_len = m.out_len = len - 1; });
  EXPECT_TRUE(is_contiguous(first, shorter));
  EXPECT_FALSE(is_next_sector(first, shorter));
  const Message other_way = changed([](Message& m) { m.direction = Direction::decrypt; });
  EXPECT_FALSE(is_next_sector(first, other_way));
  const Message iv_elsewhere = changed([](Message& m) { m.iv += 16; });
  EXPECT_TRUE(is_contiguous(first, iv_elsewhere));
  EXPECT_FALSE(is_next_sector(first, iv_elsewhere));
  const Message text_elsewhere = changed([](Message& m) { m.in += 16; });
  EXPECT_FALSE(is_contiguous(first, text_elsewhere));
  EXPECT_FALSE(is_next_sector(first, text_elsewhere));
  const Message result_elsewhere = changed([](Message& m) { m.out += 16; });
  EXPECT_FALSE(is_contiguous(first, result_elsewhere));
  EXPECT_FALSE(is_next_sector(first, result_elsewhere));

  // A length that would not stay aligned, and a mode other than XTS.
  Message unaligned = first, after_it = next;
  unaligned.in_len = unaligned.out_len = after_it.in_len = after_it.out_len = len - 16;
  after_it.in -= 16;
  after_it.out -= 16;
  EXPECT_TRUE(is_contiguous(unaligned, after_it));
  EXPECT_FALSE(is_next_sector(unaligned, after_it));
  const Key counter(find_algorithm("aes-128-ctr"), test::Bytes(16));
  EXPECT_FALSE(is_next_sector(sector(counter, memory, 0), sector(counter, memory, 1)));
}

TEST(ContiguousRuns, AnExtentDoesNotDependOnTheNumberOfCores) {
  Memory memory;
  test::Bytes bytes(32);
  bytes[0] = 1;
  const Key key(find_algorithm("aes-128-xts"), test::Bytes(bytes));
  constexpr std::size_t count = 16384;
  std::vector<Message> messages;
  for (std::size_t i = 0; i < count; ++i) messages.push_back(sector(key, memory, i));
  const Extent alike = find_extent(messages);
  EXPECT_EQ(alike.text_len, count * len);
  EXPECT_EQ(alike.output_len, count * len);
  EXPECT_EQ(alike.room, count * len);
  EXPECT_EQ(alike.uncut, 0u);
  EXPECT_TRUE(alike.contiguous);
  EXPECT_TRUE(alike.are_sectors);
  for (const std::size_t i : {std::size_t{1}, std::size_t{8191}, std::size_t{8192}, count - 1}) {
    std::vector<Message> changed = messages;
    changed[i].iv = memory.ivs.data();
    EXPECT_TRUE(find_extent(changed).contiguous);
    EXPECT_FALSE(find_extent(changed).are_sectors);
    changed[i].in = memory.in.data();
    EXPECT_FALSE(find_extent(changed).contiguous);
    EXPECT_FALSE(find_extent(changed).are_sectors);
  }
  const Key serial(find_algorithm("aes-128-cbc"), test::Bytes(16));
  messages[7].key = &serial;
  EXPECT_EQ(find_extent(messages).uncut, len);
}

}  // namespace
}  // namespace warpcipher
