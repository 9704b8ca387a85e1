// SPDX-License-Identifier: Apache-2.0
// Short texts close together in page-locked memory travel to a device in ranges (flow/piece.hpp): which do,
// that results are right and nothing but them is written, and that gaps are wiped with the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "flow/host_transfer.hpp"
#include "flow/piece.hpp"
#include "flow/slot_memory.hpp"
#include "flow/transfer_settings.hpp"
#include "host_device_engine.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::HostDeviceEngine;

// Texts are coalesced only across small gaps, within one allocation, and where blocks stay aligned.
TEST(CoalescedRanges, TextsCloseTogetherAreCoalesced) {
  test::Bytes memory(1 << 16);
  const Key key(find_algorithm("aes-128-cbc"), test::Bytes(16));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto text = [&](std::size_t at, std::size_t len) {
    Message m;
    m.key = &key;
    m.in = memory.data() + at;
    m.in_len = m.out_len = len;
    m.out = memory.data();
    return m;
  };
  const AddressRange all{begin, begin + memory.size()};
  const Message first = text(1600, 1600);
  for (const std::size_t gap : {0u, 16u, 192u}) EXPECT_TRUE(can_coalesce(first, text(3200 + gap, 1600), all)) << gap;
  EXPECT_FALSE(can_coalesce(first, text(3408, 1600), all)) << "a gap of 208 bytes is more than an eighth";
  EXPECT_FALSE(can_coalesce(first, text(3208, 1600), all)) << "blocks would not be aligned";
  EXPECT_FALSE(can_coalesce(first, text(1616, 1600), all)) << "texts overlap";
  EXPECT_FALSE(can_coalesce(first, text(1600, 1600), all)) << "the same text";
  EXPECT_FALSE(can_coalesce(first, text(0, 1600), all)) << "it lies before";
  EXPECT_FALSE(can_coalesce(first, text(3200, 0), all)) << "no text";
  EXPECT_FALSE(can_coalesce(text(3200, 0), text(3200, 16), all)) << "no text before";
  EXPECT_TRUE(can_coalesce(first, text(3200, 32), {begin, begin + 3232}));
  EXPECT_FALSE(can_coalesce(first, text(3200, 33), {begin, begin + 3232})) << "it leaves the allocation";
  EXPECT_TRUE(can_coalesce(text(0, 1 << 15), text((1 << 15) + most_gap, 16), all));
  EXPECT_FALSE(can_coalesce(text(0, 1 << 15), text((1 << 15) + most_gap + 16, 16), all));
  Message padded = text(0, 1600);
  padded.padding = Padding::pkcs7;
  EXPECT_FALSE(can_coalesce(padded, text(1600, 1600), all)) << "the result has no room";
  EXPECT_TRUE(can_coalesce(padded, text(1616, 1600), all));
}

// Two clients with rings of places for texts and tags; what each has in flight comes in any order.
void expect_rings(Direction direction, bool in_place, int devices, std::size_t place, std::size_t range_len,
                  bool beside_another_run = false, std::size_t out_shift = 0) {
  constexpr std::size_t clients = 2, count = 20, len = 1104, tag_len = 16;
  std::mt19937 random(16);
  HostDeviceEngine engine;
  engine.all_pinned = true;
  engine.device_count = devices;
  const Key key(find_algorithm("aes-128-gcm"), test::random_bytes(random, 16));
  const test::Bytes ivs = test::random_bytes(random, 12 * clients * count);
  std::vector<test::Bytes> in, out;
  for (std::size_t c = 0; c < clients; ++c) {
    in.push_back(test::random_bytes(random, count * place));
    out.push_back(in.back());
  }
  for (auto* const ring : {&in, &out}) {
    for (const test::Bytes& bytes : *ring) engine.reach(bytes.data(), bytes.size());
  }
  const auto messages_in = [&](std::vector<test::Bytes>& from, std::vector<test::Bytes>& to) {
    std::vector<Message> messages;
    for (std::size_t i = 0; i < clients * count; ++i) {
      Message m;
      m.key = &key;
      m.direction = direction;
      m.in = from[i % clients].data() + i / clients * place;
      m.out = to[i % clients].data() + i / clients * place + out_shift;
      m.in_len = m.out_len = len;
      m.iv = &ivs[12 * i];
      m.iv_len = 12;
      m.tag = m.out + len;
      m.tag_len = tag_len;
      messages.push_back(m);
    }
    return messages;
  };
  if (direction == Direction::decrypt) {  // tags that are right, but for one
    std::vector<Message> sealing = messages_in(in, out);
    for (Message& m : sealing) m.direction = Direction::encrypt;
    std::vector<Status> sealed(sealing.size(), Status::ok);
    reference_engine().run(make_plan(sealing, 256), sealed, nullptr);
    for (std::size_t c = 0; c < clients; ++c) std::copy(out[c].begin(), out[c].end(), in[c].begin());
    for (auto* const ring : {&in, &out}) (*ring)[1][3 * place + len] ^= 1;
  }
  std::vector<test::Bytes> expected = in_place ? in : out;
  std::vector<test::Bytes> expected_in = in;
  std::vector<Message> wanted = messages_in(in_place ? expected : expected_in, expected);
  std::vector<Message> messages = messages_in(in, in_place ? in : out);
  std::vector<Status> expected_statuses(messages.size(), Status::ok), statuses = expected_statuses;
  reference_engine().run(make_plan(wanted, 256), expected_statuses, nullptr);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (expected_statuses[i] != Status::ok) std::memset(wanted[i].out, 0, len);
  }
  std::vector<std::size_t> order(messages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Message> shuffled;
  for (const std::size_t i : order) shuffled.push_back(messages[i]);
  const TransferSettings settings{8 * len, 3, 8, 1 << 20, 1, range_len};
  std::optional<ActiveTransfer> another;
  if (beside_another_run) another.emplace();
  run_through_device(engine, shuffled, statuses, settings);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(statuses[i], expected_statuses[order[i]]);
  EXPECT_EQ(in_place ? in : out, expected);
  EXPECT_TRUE(engine.balanced());
  const std::size_t texts = clients * count * len;
  const bool in_ranges = range_len < texts && place % 16 == 0 && place - len <= len / 8;
  EXPECT_EQ(engine.gentle_lists != 0, in_ranges && out_shift == 0);
  const std::size_t by_kernel = engine.listed_bytes - texts - clients * count * tag_len;  // of what goes in
  if (in_ranges) {
    EXPECT_LE(by_kernel, clients * len);                      // a piece may hold but one of a client
    EXPECT_LE(engine.copies_to_device, 2 * engine.runs + 2);  // a list and a range of each, or of two
  } else {
    EXPECT_EQ(by_kernel, texts);
  }
}

TEST(CoalescedRanges, RingsOfPlacesTravelInFewRanges) {
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    for (const bool in_place : {false, true}) {
      int devices = 1;
      for (const std::size_t place : {1120u, 1136u, 1232u, 1141u, 2048u}) {
        SCOPED_TRACE(place);
        expect_rings(direction, in_place, devices, place, 2000);
        devices = 3 - devices;
      }
      expect_rings(direction, in_place, devices, 1120, 1 << 20);
      for (const std::size_t place : {1120u, 2048u}) expect_rings(direction, in_place, devices, place, 2000, true);
    }
  }
  expect_rings(Direction::encrypt, false, 1, 1136, 2000, true, 4);
}

// A piece of only empty texts has nothing to copy; the pieces before it do not come twice.
TEST(CoalescedRanges, EmptyTextsAfterOthersCopyNothing) {
  std::mt19937 random(17);
  constexpr std::size_t piece_len = 1024, len = 6 * piece_len;  // as many pieces, in three slots
  for (const std::size_t direct_len : {std::size_t{512}, std::size_t{1} << 20}) {
    HostDeviceEngine engine;
    engine.all_pinned = true;
    const Key key(find_algorithm("aes-128-ctr"), test::random_bytes(random, 16));
    const test::Bytes iv = test::random_bytes(random, 16);
    test::Bytes in = test::random_bytes(random, len + 64), out(len + 64), expected(len);
    for (const test::Bytes* bytes : {&in, &out}) engine.reach(bytes->data(), bytes->size());
    Message full;
    full.key = &key;
    full.in = in.data();
    full.out = out.data();
    full.in_len = full.out_len = len;
    full.iv = iv.data();
    full.iv_len = iv.size();
    Message empty = full;
    empty.in += len + 16;
    empty.out += len + 16;
    empty.in_len = empty.out_len = 0;
    const Message messages[] = {full, empty};
    Status statuses[] = {Status::ok, Status::ok};
    run_through_device(engine, messages, statuses, {piece_len, 3, 8, direct_len, 1});
    full.out = expected.data();
    reference_engine().run(make_plan({&full, 1}, 256), {statuses, 1}, nullptr);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.begin()));
    EXPECT_EQ(engine.copies_to_device, engine.runs - 1);
    EXPECT_TRUE(engine.balanced());
  }
}

// Bytes that travel in one range are wiped too, gaps and all.
TEST(CoalescedRanges, AFailureWipesRanges) {
  std::mt19937 random(18);
  constexpr std::size_t len = 1024, gap = 16, count = 20;
  const Key key(find_algorithm("aes-128-ctr"), test::random_bytes(random, 16));
  const test::Bytes iv = test::random_bytes(random, 16);
  for (const int run : {1, 2, 5}) {
    HostDeviceEngine engine;
    engine.all_pinned = true;
    engine.fail_on_run = run;
    test::Bytes texts = test::random_bytes(random, count * (len + gap));
    engine.reach(texts.data(), texts.size());
    std::vector<Message> messages(count);
    for (std::size_t i = 0; i < count; ++i) {
      Message& m = messages[i];
      m.key = &key;
      m.in = m.out = texts.data() + i * (len + gap);
      m.in_len = m.out_len = len;
      m.iv = iv.data();
      m.iv_len = iv.size();
    }
    std::vector<Status> statuses(count, Status::ok);
    const TransferSettings settings{4 * len, 3, 8, 1 << 20, 1, 2 * len};
    EXPECT_THROW(run_through_device(engine, messages, statuses, settings), Error);
    EXPECT_GT(engine.most_wiped, 2 * len + gap);
    EXPECT_TRUE(engine.balanced());
  }
}

}  // namespace
}  // namespace warpcipher
