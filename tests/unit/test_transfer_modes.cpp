// SPDX-License-Identifier: Apache-2.0
// Which transfer mode a batch gets, where a piece places texts in each layout, and what bounce buffers keep and wipe.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "flow/slot_memory.hpp"
#include "flow/transfer_modes.hpp"
#include "host_device_engine.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::HostDeviceEngine;

// Messages of `len` bytes, a gap of 64 bytes apart, each with its tag after the result.
struct Texts {
  Texts(std::size_t count, std::size_t len, const char* algorithm = "aes-128-gcm")
      : key(find_algorithm(algorithm), test::Bytes(16)), in(count * (len + 64)), out(in), messages(count) {
    for (std::size_t i = 0; i < count; ++i) {
      Message& m = messages[i];
      m.key = &key;
      m.in = in.data() + i * (len + 64);
      m.out = out.data() + i * (len + 64);
      m.in_len = m.out_len = len;
      if (!key.algorithm().is_aead()) continue;
      m.tag = m.out + len;
      m.tag_len = 16;
    }
  }

  const Key key;
  test::Bytes in, out;
  std::vector<Message> messages;
};

TransferMode choose(const HostDeviceEngine& engine, const Texts& batch) {
  PinnedRangeCache pinned(engine);
  return choose_mode(engine, pinned, batch.messages, find_extent(batch.messages), 1 << 16);
}

bool is_bounce(const TransferMode& mode) { return mode.cores_copy_in && mode.cores_copy_out; }

TEST(TransferModes, DependOnWhatTheDeviceCanAccess) {
  const Texts batch(8, 2000);
  HostDeviceEngine engine;
  EXPECT_TRUE(is_bounce(choose(engine, batch))) << "pageable memory";
  engine.all_pinned = true;
  engine.reach(batch.in.data(), batch.in.size());
  EXPECT_TRUE(is_bounce(choose(engine, batch))) << "results in pageable memory";
  engine.reached.clear();
  engine.reach(batch.out.data(), batch.out.size());
  const TransferMode scatter = choose(engine, batch);
  EXPECT_TRUE(scatter.cores_copy_in && scatter.layout.lists_out) << "texts in pageable memory";
  EXPECT_TRUE(scatter.device_writes_tags);
  engine.reach(batch.in.data(), batch.in.size());
  EXPECT_TRUE(choose(engine, batch).layout.lists_in) << "all in pinned memory";
  EXPECT_TRUE(is_bounce(choose(engine, Texts(1, 2000)))) << "one message";
  EXPECT_TRUE(is_bounce(choose(engine, Texts(8, 1000)))) << "short results";
}

TEST(TransferModes, TagsOutOfReachGoThroughTheBounceBuffer) {
  Texts batch(8, 2000);
  test::Bytes tags(8 * 16);
  for (std::size_t i = 0; i < 8; ++i) batch.messages[i].tag = tags.data() + 16 * i;
  HostDeviceEngine engine;
  engine.all_pinned = true;
  engine.reach(batch.in.data(), batch.in.size());
  engine.reach(batch.out.data(), batch.out.size());
  EXPECT_FALSE(choose(engine, batch).device_writes_tags);
  for (Message& m : batch.messages) m.direction = Direction::decrypt;
  EXPECT_TRUE(choose(engine, batch).device_writes_tags) << "nobody writes a tag";
}

TEST(TransferModes, LongPinnedRunsTravelDirectly) {
  const Texts batch(1, 4096);
  const Message& m = batch.messages[0];
  HostDeviceEngine engine;
  EXPECT_FALSE(travels_directly(engine, m, m, 1024));
  engine.all_pinned = true;
  EXPECT_TRUE(travels_directly(engine, m, m, 4096));
  EXPECT_FALSE(travels_directly(engine, m, m, 4097));
  Message empty = m;
  empty.in_len = empty.out_len = 0;
  EXPECT_FALSE(travels_directly(engine, empty, empty, 0));
}

TEST(TransferPiece, AlignsTextsOneByOneAndEachTagFollowsItsText) {
  const Texts batch(3, 100);
  TransferPiece piece(batch.messages, 4096);
  const TransferMode mode = TransferMode::bounce();
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(piece.add(i, 1, mode.layout));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(piece.items()[i].at, 128 * i);
    EXPECT_EQ(piece.items()[i].tag_at, 128 * i + 112);
  }
  EXPECT_EQ(piece.texts_len(), 3u * 128);
  EXPECT_EQ(piece.device_len(), piece.texts_len());
  EXPECT_EQ(mode.bounce_len(piece), piece.texts_len());
  piece.clear();
  EXPECT_TRUE(piece.empty());
  EXPECT_EQ(piece.device_len(), 0u);
}

TEST(TransferPiece, KeepsTextsOfADirectRunTogether) {
  const Texts batch(3, 100, "aes-128-ctr");
  TransferPiece piece(batch.messages, 4096);
  const TransferMode mode = TransferMode::direct();
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(piece.add(i, 1, mode.layout));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(piece.items()[i].at, 100 * i);
  EXPECT_EQ(mode.bounce_len(piece), 0u);
}

TEST(TransferPiece, CoalescedTextsKeepTheirDistancesAndTagsComeLast) {
  const Texts batch(3, 1600);  // 1664 bytes apart
  HostDeviceEngine engine;
  engine.all_pinned = true;
  engine.reach(batch.in.data(), batch.in.size());
  PinnedRangeCache pinned(engine);
  const TransferMode mode = TransferMode::gather_scatter(pinned, 1 << 16, true);
  TransferPiece piece(batch.messages, std::size_t{1} << 16);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(piece.add(i, 1, mode.layout));
  piece.place_tags(mode.layout);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(piece.items()[i].at, 1664 * i);
    EXPECT_EQ(piece.items()[i].coalesced, i != 0);
    EXPECT_EQ(piece.items()[i].tag_at, 2 * 1664 + 1600 + 16 * i);
  }
  EXPECT_EQ(piece.list_len(), 9 * sizeof(DeviceCopy)) << "each text in, each text out, each tag";
}

TEST(TransferPiece, IsFullWhenTextsListAndTagsNeedItsSize) {
  const Texts batch(3, 2000);
  const TransferMode mode = TransferMode::scatter(true);
  const std::size_t room =
      TransferPiece::room_for(batch.messages[0]) + TransferPiece::list_room_for(batch.messages[0], mode.layout);
  TransferPiece piece(batch.messages, 2 * room);
  EXPECT_TRUE(piece.add(0, 1, mode.layout));
  EXPECT_TRUE(piece.add(1, 1, mode.layout));
  EXPECT_FALSE(piece.add(2, 1, mode.layout));
  EXPECT_EQ(piece.items().size(), 2u);
  TransferPiece too_small(batch.messages, 64);
  EXPECT_TRUE(too_small.add(0, 1, mode.layout)) << "an empty piece takes anything";
}

TEST(SlotMemory, PageLockedMemoryGrowsToTheNextLengthAndIsWiped) {
  HostDeviceEngine engine;
  {
    SlotMemory slot(engine);
    EXPECT_EQ(slot.pinned(0, 1000), nullptr);
    std::uint8_t* memory = slot.pinned(100, 1000);
    std::memset(memory, 1, 100);
    slot.set_secret(memory, 100);
    EXPECT_EQ(engine.most_allocated, 100u);
    EXPECT_EQ(slot.pinned(50, 1000), memory);
    EXPECT_EQ(engine.most_allocated, 100u);
    memory = slot.pinned(200, 1000);
    EXPECT_EQ(engine.most_allocated, 1000u) << "the first block was given back before";
    std::memset(memory, 1, 200);
    slot.set_secret(memory, 200);
  }
  EXPECT_TRUE(engine.balanced()) << "all wiped and freed";
}

TEST(PinnedCache, KeepsMemoryOfItsThreadUntilItIsWiped) {
  HostDeviceEngine engine;
  PinnedCache cache;
  const std::uint8_t* first = nullptr;
  {
    SlotMemory slot(engine);
    std::uint8_t* const memory = slot.pinned(100);
    std::memset(memory, 1, 100);
    slot.set_secret(memory, 100);
    first = memory;
  }
  EXPECT_FALSE(cache.empty());
  EXPECT_FALSE(engine.balanced());
  {
    SlotMemory slot(engine);
    EXPECT_EQ(slot.pinned(5000), first) << "blocks are rounded up, so that the same one is long enough";
    EXPECT_TRUE(cache.empty());
  }
  cache.wipe();
  EXPECT_TRUE(cache.empty());
  EXPECT_TRUE(engine.balanced());
}

}  // namespace
}  // namespace warpcipher
