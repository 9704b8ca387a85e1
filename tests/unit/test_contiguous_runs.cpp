// SPDX-License-Identifier: Apache-2.0
// Which messages are a contiguous run, and which runs are sectors (flow/piece.hpp); and how they travel.
#include <gtest/gtest.h>

#include "flow/host_transfer.hpp"
#include "flow/piece.hpp"
#include "host_device_engine.hpp"
#include "support.hpp"

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

// Contiguous messages, as the columns of a batch are.
void expect_right(bool pinned, std::size_t count, std::size_t message_len, bool contiguous_ivs,
                  const TransferSettings& settings, test::HostDeviceEngine& engine) {
  std::mt19937 random(13);
  engine.all_pinned = pinned;
  const Key key(find_algorithm("aes-256-xts"), test::random_bytes(random, 64));
  test::Bytes text = test::random_bytes(random, count * message_len), ivs = test::random_bytes(random, 16 * count);
  test::Bytes out(text.size()), expected(text.size());
  std::vector<Message> messages(count);
  for (std::size_t i = 0; i < count; ++i) {
    Message& m = messages[i];
    m.key = &key;
    m.in = text.data() + i * message_len;
    m.in_len = m.out_len = message_len;
    m.out = expected.data() + i * message_len;
    m.iv = ivs.data() + 16 * (contiguous_ivs ? i : count - 1 - i);
    m.iv_len = 16;
  }
  std::vector<Status> statuses(count, Status::ok);
  reference_engine().run(make_plan(messages, 256), statuses, nullptr);
  for (std::size_t i = 0; i < count; ++i) messages[i].out = out.data() + i * message_len;
  run_through_device(engine, messages, statuses, settings);
  EXPECT_EQ(out, expected);
  EXPECT_EQ(engine.copies_to_device, engine.runs);
  EXPECT_TRUE(engine.balanced());
}

TEST(ContiguousRuns, MessagesTravelAsOneRange) {
  for (const bool pinned : {false, true}) {
    test::HostDeviceEngine engine;
    expect_right(pinned, 64, 96, true, {1024, 3, 8, 512, 1}, engine);
    EXPECT_LE(engine.runs, pinned ? 7 : 8);
  }
}

// Sectors are sent as their first and their number, unless they are few or their IVs are not contiguous.
TEST(ContiguousRuns, SectorsNeedNoList) {
  constexpr std::size_t sector_len = 128, of_piece = 100;
  const TransferSettings settings{sector_len * of_piece / 256 * 256, 3, 1, 1024, 1};
  for (const bool pinned : {false, true}) {
    test::HostDeviceEngine engine;
    expect_right(pinned, 3 * of_piece + 70, sector_len, true, settings, engine);
    EXPECT_EQ(engine.sectors, 3 * of_piece + 70);
    EXPECT_EQ(engine.runs, 4);
    test::HostDeviceEngine with_rest;
    expect_right(pinned, of_piece + 63, sector_len, true, settings, with_rest);
    EXPECT_EQ(with_rest.sectors, of_piece);
    test::HostDeviceEngine listing;
    expect_right(pinned, 3 * of_piece, sector_len, false, settings, listing);
    EXPECT_EQ(listing.sectors, 0u);
  }
}

}  // namespace
}  // namespace warpcipher
