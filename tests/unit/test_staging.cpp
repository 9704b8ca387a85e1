// SPDX-License-Identifier: Apache-2.0
// Host data goes to a device in pieces and comes back right: packed, cut with the right chaining values, or whole.
#include <gtest/gtest.h>

#include <deque>
#include <numeric>

#include "host_device_engine.hpp"
#include "pipeline/goes_on.hpp"
#include "pipeline/slot.hpp"
#include "pipeline/staging.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::HostDeviceEngine;
using test::Sample;

constexpr std::size_t piece_len = 1024;
constexpr PipelineShape small{piece_len, 3, 8, 512, 1};

// Where the caller's memory lies, and how many devices there are.
struct Machine {
  bool pinned;
  int devices;
};

// Runs the samples on the reference engine and through a device, and compares everything that may be written.
void expect_same_on(std::deque<Sample>& samples, bool in_place, Machine machine) {
  HostDeviceEngine engine;
  engine.all_pinned = machine.pinned;
  engine.device_count = machine.devices;
  std::vector<Message> messages, expected;
  std::deque<test::Bytes> expected_out, expected_tag;
  for (Sample& s : samples) {
    Message m = s.message;
    m.out = expected_out.emplace_back(s.out).data();
    m.tag = expected_tag.emplace_back(s.tag).data();
    expected.push_back(m);
  }
  std::vector<Status> statuses(samples.size(), Status::ok), expected_statuses = statuses;
  reference_engine().run(make_plan(expected, 256), expected_statuses, nullptr);
  for (Sample& s : samples) {
    if (in_place) s.alias();
    messages.push_back(s.message);
    for (const test::Bytes* bytes : {&s.in, &s.out, &s.tag}) engine.reach(bytes->data(), bytes->size());
  }
  run_through_device(engine, messages, statuses, small);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Message& m = samples[i].message;
    SCOPED_TRACE(std::string(m.algorithm().name) + " of " + std::to_string(m.in_len));
    EXPECT_EQ(statuses[i], expected_statuses[i]);
    EXPECT_EQ(0, std::memcmp(m.out, expected_out[i].data(), m.output_len()));
    EXPECT_EQ(samples[i].tag, expected_tag[i]);
    EXPECT_TRUE(samples[i].guard_intact());
  }
  EXPECT_TRUE(engine.balanced());
}

void expect_same(std::deque<Sample>& samples, bool in_place) {
  static int turn = 0;  // a way for each call, in turn
  expect_same_on(samples, in_place, {turn % 2 != 0, 1 + turn / 2 % 2});
  ++turn;
}

TEST(Staging, CutsLongMessagesWithTheRightChain) {
  std::mt19937 random(1);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const std::size_t len : {0u, 1u, 15u, 16u, 17u, 1008u, 1024u, 1040u, 5000u}) {
        for (const bool in_place : {false, true}) {
          std::deque<Sample> one;
          one.emplace_back(random, algorithm, direction, test::valid_len(algorithm, len));
          expect_same(one, in_place);
        }
      }
    }
  }
}

TEST(Staging, PadsTheLastPieceAlone) {
  std::mt19937 random(2);
  for (const char* name : {"aes-128-ecb", "aes-256-cbc", "des-ede3-ecb"}) {
    for (std::size_t len = 2030; len < 2070; ++len) {
      std::deque<Sample> one;
      one.emplace_back(random, find_algorithm(name), Direction::encrypt, len, Padding::pkcs7);
      expect_same(one, false);
    }
  }
}

TEST(Staging, PacksManyMessagesOfEveryKind) {
  std::mt19937 random(3);
  for (const bool in_place : {false, true}) {
    std::deque<Sample> many;
    for (int i = 0; i < 300; ++i) {
      const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
      const std::size_t len = random() % (i % 10 == 0 ? 3000 : 300);
      many.emplace_back(random, algorithm, static_cast<Direction>(random() % 2), test::valid_len(algorithm, len));
    }
    expect_same(many, in_place);
  }
}

TEST(Staging, PacksShortMessagesIntoFewRuns) {
  std::mt19937 random(4);
  HostDeviceEngine engine;
  std::deque<Sample> many;
  std::vector<Message> messages;
  for (int i = 0; i < 64; ++i) {
    many.emplace_back(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 100);
    messages.push_back(many.back().message);
  }
  std::vector<Status> statuses(messages.size(), Status::ok);
  run_through_device(engine, messages, statuses, small);
  EXPECT_EQ(engine.runs, 8);  // 128 bytes of room each, 8 to a piece
}

TEST(Staging, BoundsItsMemory) {
  std::mt19937 random(5);
  HostDeviceEngine engine;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 1 << 17);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1}, small);
  EXPECT_LE(engine.most_allocated, 2 * small.slots * piece_len);
  EXPECT_GE(engine.runs, 128);
}

TEST(Staging, AFailureFreesEverything) {
  std::mt19937 random(6);
  for (const int run : {1, 2, 5}) {
    HostDeviceEngine engine;
    engine.fail_on_run = run;
    Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 10000);
    Status status = Status::ok;
    EXPECT_THROW(run_through_device(engine, {&sample.message, 1}, {&status, 1}, small), Error);
    EXPECT_TRUE(engine.balanced());
  }
}

// A GCM message that is encrypted by the reference engine, to be decrypted through a device in pieces.
Sample sealed_sample(std::mt19937& random, std::size_t len) {
  Sample sample(random, find_algorithm("aes-256-gcm"), Direction::encrypt, len);
  Status status = Status::ok;
  reference_engine().run(make_plan({&sample.message, 1}, 256), {&status, 1}, nullptr);
  std::copy_n(sample.out.begin(), len, sample.in.begin());
  std::fill(sample.out.begin(), sample.out.end(), Sample::guard_byte);
  sample.message.direction = Direction::decrypt;
  return sample;
}

TEST(Staging, DecryptsGcmInPieces) {
  std::mt19937 random(7);
  for (const std::size_t len : {100u, 1024u, 1025u, 4096u, 9999u}) {
    for (const Machine machine : {Machine{false, 1}, Machine{true, 1}, Machine{false, 2}, Machine{true, 2}}) {
      std::deque<Sample> one;
      one.push_back(sealed_sample(random, len));
      if (len == 9999) {  // IVs that are hashed
        one.clear();
        one.emplace_back(random, find_algorithm("aes-128-gcm"), Direction::encrypt, len);
        one[0].iv = test::random_bytes(random, 21);
        one[0].message.iv = one[0].iv.data();
        one[0].message.iv_len = 21;
      }
      expect_same_on(one, false, machine);
    }
  }
}

TEST(Staging, ABadTagLeavesZeros) {
  std::mt19937 random(8);
  for (const std::size_t len : {100u, 1024u, 5000u}) {
    for (const bool pinned : {false, true}) {
      for (const bool in_place : {false, true}) {
        HostDeviceEngine engine;
        engine.all_pinned = pinned;
        std::deque<Sample> samples;
        for (int i = 0; i < 3; ++i) samples.push_back(sealed_sample(random, len));
        samples[1].tag[3] ^= 1;
        std::vector<Message> messages;
        for (Sample& s : samples) {
          if (in_place) s.alias();
          s.message.tag_len = 12;
          messages.push_back(s.message);
        }
        std::vector<Status> statuses(3, Status::ok);
        run_through_device(engine, messages, statuses, small);
        EXPECT_EQ(statuses, (std::vector<Status>{Status::ok, Status::invalid_tag, Status::ok}));
        const test::Bytes zeros(len, 0);
        EXPECT_EQ(0, std::memcmp(samples[1].out.data(), zeros.data(), len));
        EXPECT_NE(0, std::memcmp(samples[2].out.data(), zeros.data(), len));
        EXPECT_TRUE(samples[1].guard_intact());
        EXPECT_TRUE(engine.balanced());
      }
    }
  }
}

TEST(Staging, AFailureLeavesNoUncheckedText) {
  std::mt19937 random(9);
  for (const bool pinned : {false, true}) {
    HostDeviceEngine engine;
    engine.all_pinned = pinned;
    engine.fail_on_run = 7;
    Sample sample = sealed_sample(random, 10000);
    Status status = Status::ok;
    EXPECT_THROW(run_through_device(engine, {&sample.message, 1}, {&status, 1}, small), Error);
    EXPECT_EQ(test::Bytes(sample.out.begin(), sample.out.begin() + 10000), test::Bytes(10000, 0));
    EXPECT_TRUE(engine.balanced());
  }
}

TEST(Staging, DealsPiecesToDevices) {
  std::mt19937 random(10);
  HostDeviceEngine engine;
  engine.device_count = 3;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 30 * piece_len);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1}, small);
  EXPECT_EQ(engine.runs_of_device, (std::map<int, int>{{0, 10}, {1, 10}, {2, 10}}));
  EXPECT_EQ(engine.select_device(0), 0);
}

TEST(Staging, PageLockedMemoryIsNotCopiedByTheHost) {
  std::mt19937 random(11);
  HostDeviceEngine engine;
  engine.all_pinned = true;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 8 * piece_len);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1}, small);
  EXPECT_LE(engine.most_allocated, small.slots * piece_len);  // device memory alone
}

// Each text has a place of its own, with its tag behind it: the device itself reads and writes them there.
TEST(Staging, ShortTextsGoStraightFromAndToPageLockedMemory) {
  std::mt19937 random(14);
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    std::deque<Sample> samples;
    for (int i = 0; i < 40; ++i) {
      samples.emplace_back(random, find_algorithm("aes-256-gcm"), direction, 1 + random() % (2 * piece_len));
    }
    samples.emplace_back(random, find_algorithm("aes-128-ctr"), direction, 40'000);  // more than one copy
    for (const bool in_place : {false, true}) expect_same_on(samples, in_place, {true, 1});
  }
  HostDeviceEngine engine;
  engine.all_pinned = true;
  std::deque<Sample> samples;
  std::vector<Message> messages;
  for (int i = 0; i < 8; ++i) {
    const Sample& s = samples.emplace_back(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 2000);
    messages.push_back(s.message);
    for (const test::Bytes* bytes : {&s.in, &s.out, &s.tag}) engine.reach(bytes->data(), bytes->size());
  }
  std::vector<Status> statuses(messages.size(), Status::ok);
  run_through_device(engine, messages, statuses);
  EXPECT_EQ(engine.runs, 1);
  EXPECT_EQ(engine.lists, 2);
  EXPECT_EQ(engine.copies_to_device, 1);                                   // of the lists
  EXPECT_LE(engine.most_wiped, 8 * (2048 + 16 + 3 * sizeof(DeviceCopy)));  // texts, tags; texts in and out, tags
  EXPECT_TRUE(engine.balanced());
}

// What goes along in one range: no more than a small gap, in one allocation, and so that blocks stay aligned.
TEST(Staging, TextsCloseTogetherGoOnInOneRange) {
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
  for (const std::size_t gap : {0u, 16u, 192u}) EXPECT_TRUE(goes_on(first, text(3200 + gap, 1600), all)) << gap;
  EXPECT_FALSE(goes_on(first, text(3408, 1600), all)) << "a gap of 208 bytes is more than an eighth";
  EXPECT_FALSE(goes_on(first, text(3208, 1600), all)) << "blocks would not be aligned";
  EXPECT_FALSE(goes_on(first, text(1616, 1600), all)) << "texts overlap";
  EXPECT_FALSE(goes_on(first, text(1600, 1600), all)) << "the same text";
  EXPECT_FALSE(goes_on(first, text(0, 1600), all)) << "it lies before";
  EXPECT_FALSE(goes_on(first, text(3200, 0), all)) << "no text";
  EXPECT_FALSE(goes_on(text(3200, 0), text(3200, 16), all)) << "no text before";
  EXPECT_TRUE(goes_on(first, text(3200, 32), {begin, begin + 3232}));
  EXPECT_FALSE(goes_on(first, text(3200, 33), {begin, begin + 3232})) << "it leaves the allocation";
  EXPECT_TRUE(goes_on(text(0, 1 << 15), text((1 << 15) + most_gap, 16), all));
  EXPECT_FALSE(goes_on(text(0, 1 << 15), text((1 << 15) + most_gap + 16, 16), all));
  Message padded = text(0, 1600);
  padded.padding = Padding::pkcs7;
  EXPECT_FALSE(goes_on(padded, text(1600, 1600), all)) << "the result has no room";
  EXPECT_TRUE(goes_on(padded, text(1616, 1600), all));
}

// Two clients with rings of places for texts and tags; what each has in flight comes in any order.
void expect_rings(Direction direction, bool in_place, int devices, std::size_t place, std::size_t range_len) {
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
      m.out = to[i % clients].data() + i / clients * place;
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
  const PipelineShape shape{8 * len, 3, 8, 1 << 20, 1, range_len};
  run_through_device(engine, shuffled, statuses, shape);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(statuses[i], expected_statuses[order[i]]);
  EXPECT_EQ(in_place ? in : out, expected);
  EXPECT_TRUE(engine.balanced());
  const std::size_t texts = clients * count * len;
  const bool in_ranges = range_len < texts && place % 16 == 0 && place - len <= len / 8;
  const std::size_t by_kernel = engine.listed_bytes - texts - clients * count * tag_len;  // of what goes in
  if (in_ranges) {
    EXPECT_LE(by_kernel, clients * len);                      // a piece may hold but one of a client
    EXPECT_LE(engine.copies_to_device, 2 * engine.runs + 2);  // a list and a range of each, or of two
  } else {
    EXPECT_EQ(by_kernel, texts);
  }
}

TEST(Staging, RingsOfPlacesTravelInFewRanges) {
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    for (const bool in_place : {false, true}) {
      int devices = 1;
      for (const std::size_t place : {1120u, 1136u, 1232u, 1141u, 2048u}) {
        SCOPED_TRACE(place);
        expect_rings(direction, in_place, devices, place, 2000);
        devices = 3 - devices;
      }
      expect_rings(direction, in_place, devices, 1120, 1 << 20);
    }
  }
}

// A piece of empty texts alone has nothing to copy; the pieces before it do not come twice.
TEST(Staging, EmptyTextsBehindOthersCopyNothing) {
  std::mt19937 random(17);
  constexpr std::size_t len = 6 * piece_len;  // as many pieces, in three slots
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

// From pageable memory to page-locked memory: the cores pack texts on the way in alone. Tags come back either way.
TEST(Staging, TextsFromPageableMemoryAreScattered) {
  std::mt19937 random(15);
  constexpr std::size_t count = 8, len = 2000, tag_len = 16;
  for (const bool reaches_tags : {false, true}) {
    HostDeviceEngine engine;
    engine.all_pinned = true;
    test::Bytes outs(count * len + count * tag_len), expected(len), tag(tag_len);
    engine.reach(outs.data(), count * len + (reaches_tags ? count * tag_len : 0));
    std::deque<Sample> samples;
    std::vector<Message> messages;
    for (std::size_t i = 0; i < count; ++i) {
      samples.emplace_back(random, find_algorithm("aes-128-gcm"), Direction::encrypt, len);
      Message m = samples.back().message;
      m.out = outs.data() + i * len;
      m.tag = outs.data() + count * len + i * tag_len;
      m.tag_len = tag_len;
      messages.push_back(m);
    }
    std::vector<Status> statuses(count, Status::ok);
    run_through_device(engine, messages, statuses);
    EXPECT_EQ(engine.lists, 1);
    EXPECT_TRUE(engine.balanced());
    for (Message m : messages) {
      const Message got = m;
      m.out = expected.data();
      m.tag = tag.data();
      Status status = Status::ok;
      reference_engine().run(make_plan({&m, 1}, 256), {&status, 1}, nullptr);
      EXPECT_EQ(0, std::memcmp(got.out, m.out, len));
      EXPECT_EQ(0, std::memcmp(got.tag, m.tag, tag_len));
    }
  }
}

TEST(Staging, NothingBeyondTheBytesUsedIsAllocatedOrWiped) {
  std::mt19937 random(12);
  HostDeviceEngine engine;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 16);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1});
  EXPECT_LE(engine.most_allocated, 2 * Slot::alignment);
  EXPECT_LE(engine.most_wiped, Slot::alignment);
  EXPECT_EQ(engine.copies_to_device, 1);
}

// Messages in a row of the caller's memory, as columns of a batch are.
TEST(Staging, MessagesInARowTravelAsOneRange) {
  std::mt19937 random(13);
  for (const bool pinned : {false, true}) {
    HostDeviceEngine engine;
    engine.all_pinned = pinned;
    constexpr std::size_t count = 64, len = 96;
    const Key key(find_algorithm("aes-256-xts"), test::random_bytes(random, 64));
    test::Bytes text = test::random_bytes(random, count * len), ivs = test::random_bytes(random, 16 * count);
    test::Bytes out(text.size()), expected(text.size());
    std::vector<Message> messages(count);
    for (std::size_t i = 0; i < count; ++i) {
      Message& m = messages[i];
      m.key = &key;
      m.in = text.data() + i * len;
      m.in_len = m.out_len = len;
      m.out = expected.data() + i * len;
      m.iv = ivs.data() + 16 * i;
      m.iv_len = 16;
    }
    std::vector<Status> statuses(count, Status::ok);
    reference_engine().run(make_plan(messages, 256), statuses, nullptr);
    for (std::size_t i = 0; i < count; ++i) messages[i].out = out.data() + i * len;
    run_through_device(engine, messages, statuses, small);
    EXPECT_EQ(out, expected);
    EXPECT_EQ(engine.copies_to_device, engine.runs);
    EXPECT_LE(engine.runs, pinned ? 7 : 8);
    EXPECT_TRUE(engine.balanced());
  }
}

TEST(Staging, ChoosesPiecesBySize) {
  constexpr std::size_t MiB = std::size_t{1} << 20;
  EXPECT_EQ(choose_shape(16, 8).piece_len, MiB / 2);
  EXPECT_EQ(choose_shape(16, 8).devices, 1u);
  EXPECT_EQ(choose_shape(16 * MiB, 1).piece_len, 4 * MiB);
  EXPECT_EQ(choose_shape(1024 * MiB, 1).piece_len, 8 * MiB);
  EXPECT_EQ(choose_shape(1024 * MiB, 8).devices, 8u);
  EXPECT_EQ(choose_shape(64 * MiB, 8).devices, 2u);
  EXPECT_EQ(choose_shape(8 * MiB, 1).piece_len, 2 * MiB);
  EXPECT_EQ(choose_shape(8 * MiB, 1, 512).piece_len, 9 * MiB);  // short messages
  EXPECT_EQ(choose_shape(256 * MiB, 1, 512).piece_len, 8 * MiB);
}

}  // namespace
}  // namespace warpcipher
