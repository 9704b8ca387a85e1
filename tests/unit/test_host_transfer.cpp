// SPDX-License-Identifier: Apache-2.0
// Host data goes to a device in pieces and comes back right: packed, cut with the right chaining values, or whole.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <span>

#include "flow/host_transfer.hpp"
#include "flow/piece.hpp"
#include "host_device_engine.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::HostDeviceEngine;
using test::Sample;

constexpr std::size_t piece_len = 1024;
constexpr TransferSettings small{piece_len, 3, 8, 512, 1};

// Where the caller's memory lies, and how many devices there are.
struct Machine {
  bool pinned;
  int devices;
};

// Pageable and pinned memory; and with two devices, for what makes several pieces.
constexpr std::array<Machine, 4> machines{{{false, 1}, {true, 1}, {false, 2}, {true, 2}}};
const std::span<const Machine> all_machines(machines), one_device = all_machines.first(2);

// The expected results of samples, by the reference engine.
struct Expected {
  explicit Expected(const std::deque<Sample>& samples) : statuses(samples.size(), Status::ok) {
    std::vector<Message> messages;
    for (const Sample& s : samples) {
      Message m = s.message;
      m.out = out.emplace_back(s.out).data();
      m.tag = tag.emplace_back(s.tag).data();
      messages.push_back(m);
    }
    reference_engine().run(make_plan(messages, 256), statuses, nullptr);
  }

  std::deque<test::Bytes> out, tag;
  std::vector<Status> statuses;
};

// Runs the samples through the devices of each machine, and compares everything that may be written. Before each run
// the samples are as they were given.
void expect_same(std::deque<Sample>& samples, bool in_place, std::span<const Machine> on) {
  const Expected expected(samples);
  std::deque<test::Bytes> out, tag;
  for (const Sample& s : samples) {
    out.push_back(s.out);
    tag.push_back(s.tag);
  }
  for (const Machine machine : on) {
    HostDeviceEngine engine;
    engine.all_pinned = machine.pinned;
    engine.device_count = machine.devices;
    std::vector<Message> messages;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      Sample& s = samples[i];
      std::copy(out[i].begin(), out[i].end(), s.out.begin());
      std::copy(tag[i].begin(), tag[i].end(), s.tag.begin());
      if (in_place) s.alias();
      messages.push_back(s.message);
      for (const test::Bytes* bytes : {&s.in, &s.out, &s.tag}) engine.reach(bytes->data(), bytes->size());
    }
    std::vector<Status> statuses(samples.size(), Status::ok);
    run_through_device(engine, messages, statuses, small);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Message& m = samples[i].message;
      SCOPED_TRACE(std::string(m.algorithm().name) + " of " + std::to_string(m.in_len) +
                   (machine.pinned ? " pinned, " : " pageable, ") + std::to_string(machine.devices) + " devices");
      EXPECT_EQ(statuses[i], expected.statuses[i]);
      EXPECT_EQ(0, std::memcmp(m.out, expected.out[i].data(), m.output_len()));
      EXPECT_EQ(samples[i].tag, expected.tag[i]);
      EXPECT_TRUE(samples[i].guard_intact());
    }
    EXPECT_TRUE(engine.balanced());
  }
}

TEST(HostTransfer, CutsLongMessagesWithTheRightChain) {
  std::mt19937 random(1);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const std::size_t len : {0u, 1u, 15u, 16u, 17u, 1008u, 1024u, 1040u, 5000u}) {
        std::deque<Sample> one;
        one.emplace_back(random, algorithm, direction, test::valid_len(algorithm, len));
        expect_same(one, random() % 2 == 0, len > piece_len ? all_machines : one_device);
      }
    }
  }
}

TEST(HostTransfer, PadsTheLastPieceAlone) {
  std::mt19937 random(2);
  for (const char* name : {"aes-128-ecb", "aes-256-cbc", "des-ede3-ecb"}) {
    for (std::size_t len = 2030; len < 2070; ++len) {
      std::deque<Sample> one;
      one.emplace_back(random, find_algorithm(name), Direction::encrypt, len, Padding::pkcs7);
      expect_same(one, false, all_machines);
    }
  }
}

TEST(HostTransfer, PacksManyMessagesOfEveryKind) {
  std::mt19937 random(3);
  for (const bool in_place : {false, true}) {
    std::deque<Sample> many;
    for (int i = 0; i < 300; ++i) {
      const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
      const std::size_t len = random() % (i % 10 == 0 ? 3000 : 300);
      many.emplace_back(random, algorithm, static_cast<Direction>(random() % 2), test::valid_len(algorithm, len));
    }
    expect_same(many, in_place, all_machines);
  }
}

TEST(HostTransfer, PacksShortMessagesIntoFewRuns) {
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

TEST(HostTransfer, BoundsItsMemory) {
  std::mt19937 random(5);
  HostDeviceEngine engine;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 1 << 17);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1}, small);
  EXPECT_LE(engine.most_allocated, 2 * small.slots * piece_len);
  EXPECT_GE(engine.runs, 128);
}

TEST(HostTransfer, AFailureFreesEverything) {
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

// AEADs whose messages can be cut.
constexpr std::array<const char*, 3> cut_aeads{"aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"};

// A message that is encrypted by the reference engine, to be decrypted through a device in pieces.
Sample sealed_sample(std::mt19937& random, const char* algorithm, std::size_t len) {
  Sample sample(random, find_algorithm(algorithm), Direction::encrypt, len);
  Status status = Status::ok;
  reference_engine().run(make_plan({&sample.message, 1}, 256), {&status, 1}, nullptr);
  std::copy_n(sample.out.begin(), len, sample.in.begin());
  std::fill(sample.out.begin(), sample.out.end(), Sample::guard_byte);
  sample.message.direction = Direction::decrypt;
  return sample;
}

TEST(HostTransfer, DecryptsAeadsInPieces) {
  std::mt19937 random(7);
  for (const char* algorithm : cut_aeads) {
    for (const std::size_t len : {100u, 1024u, 1025u, 4096u, 9999u}) {
      for (const bool in_place : {false, true}) {
        std::deque<Sample> one;
        one.push_back(sealed_sample(random, algorithm, len));
        expect_same(one, in_place, all_machines);
      }
    }
  }
}

TEST(HostTransfer, CutsGcmWithAnIvThatIsHashed) {
  std::mt19937 random(16);
  std::deque<Sample> one;
  one.emplace_back(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 9999);
  one[0].iv = test::random_bytes(random, 21);
  one[0].message.iv = one[0].iv.data();
  one[0].message.iv_len = 21;
  expect_same(one, false, all_machines);
}

// The pieces of ChaCha20-Poly1305 really are pieces.
TEST(HostTransfer, CutsEveryAeadThatCanBe) {
  std::mt19937 random(17);
  for (const char* algorithm : cut_aeads) {
    HostDeviceEngine engine;
    engine.all_pinned = true;
    Sample sample(random, find_algorithm(algorithm), Direction::encrypt, 20 * piece_len);
    Status status = Status::ok;
    run_through_device(engine, {&sample.message, 1}, {&status, 1}, small);
    EXPECT_GT(engine.runs, 20);
    EXPECT_LE(engine.most_allocated, 5 * piece_len) << algorithm;
    EXPECT_TRUE(engine.balanced());
  }
}

TEST(HostTransfer, ABadTagLeavesZeros) {
  std::mt19937 random(8);
  for (const std::size_t len : {100u, 1024u, 5000u}) {
    for (const bool pinned : {false, true}) {
      for (const bool in_place : {false, true}) {
        HostDeviceEngine engine;
        engine.all_pinned = pinned;
        std::deque<Sample> samples;
        for (const char* algorithm : cut_aeads) samples.push_back(sealed_sample(random, algorithm, len));
        const std::size_t bad = random() % samples.size(), good = (bad + 1) % samples.size();
        samples[bad].tag[3] ^= 1;
        std::vector<Message> messages;
        for (Sample& s : samples) {
          if (in_place) s.alias();
          if (s.message.algorithm().mode.id == Mode::gcm) s.message.tag_len = 12;
          messages.push_back(s.message);
        }
        std::vector<Status> statuses(3, Status::ok);
        run_through_device(engine, messages, statuses, small);
        std::vector<Status> expected(3, Status::ok);
        expected[bad] = Status::invalid_tag;
        EXPECT_EQ(statuses, expected);
        const test::Bytes zeros(len, 0);
        EXPECT_EQ(0, std::memcmp(samples[bad].out.data(), zeros.data(), len));
        EXPECT_NE(0, std::memcmp(samples[good].out.data(), zeros.data(), len));
        EXPECT_TRUE(samples[bad].guard_intact());
        EXPECT_TRUE(engine.balanced());
      }
    }
  }
}

TEST(HostTransfer, AFailureLeavesNoUncheckedText) {
  std::mt19937 random(9);
  for (const char* algorithm : cut_aeads) {
    for (const bool pinned : {false, true}) {
      HostDeviceEngine engine;
      engine.all_pinned = pinned;
      engine.fail_on_run = 7;
      Sample sample = sealed_sample(random, algorithm, 10000);
      Status status = Status::ok;
      EXPECT_THROW(run_through_device(engine, {&sample.message, 1}, {&status, 1}, small), Error);
      EXPECT_EQ(test::Bytes(sample.out.begin(), sample.out.begin() + 10000), test::Bytes(10000, 0));
      EXPECT_TRUE(engine.balanced());
    }
  }
}

TEST(HostTransfer, DealsPiecesToDevices) {
  std::mt19937 random(10);
  HostDeviceEngine engine;
  engine.device_count = 3;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 30 * piece_len);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1}, small);
  EXPECT_EQ(engine.runs_of_device, (std::map<int, int>{{0, 10}, {1, 10}, {2, 10}}));
  EXPECT_EQ(engine.select_device(0), 0);
}

TEST(HostTransfer, PageLockedMemoryIsNotCopiedByTheHost) {
  std::mt19937 random(11);
  HostDeviceEngine engine;
  engine.all_pinned = true;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 8 * piece_len);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1}, small);
  EXPECT_LE(engine.most_allocated, small.slots * piece_len);  // only device memory
}

// Each text has a place of its own, with its tag after it: the device itself reads and writes them there.
TEST(HostTransfer, ShortTextsGoStraightFromAndToPageLockedMemory) {
  std::mt19937 random(14);
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    std::deque<Sample> samples;
    for (int i = 0; i < 40; ++i) {
      samples.emplace_back(random, find_algorithm("aes-256-gcm"), direction, 1 + random() % (2 * piece_len));
    }
    samples.emplace_back(random, find_algorithm("aes-128-ctr"), direction, 40'000);  // more than one copy
    for (const bool in_place : {false, true}) expect_same(samples, in_place, one_device);
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

// From pageable memory to page-locked memory: the cores pack texts only on the way in. Tags come back either way.
TEST(HostTransfer, TextsFromPageableMemoryAreScattered) {
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

TEST(HostTransfer, NothingBeyondTheBytesUsedIsAllocatedOrWiped) {
  std::mt19937 random(12);
  HostDeviceEngine engine;
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 16);
  Status status = Status::ok;
  run_through_device(engine, {&sample.message, 1}, {&status, 1});
  EXPECT_LE(engine.most_allocated, 2 * TransferPiece::alignment);
  EXPECT_LE(engine.most_wiped, TransferPiece::alignment);
  EXPECT_EQ(engine.copies_to_device, 1);
}

TEST(HostTransfer, ChoosesPiecesBySize) {
  constexpr std::size_t MiB = std::size_t{1} << 20;
  EXPECT_EQ(choose_transfer_settings(16, 8).piece_len, MiB / 2);
  EXPECT_EQ(choose_transfer_settings(16, 8).devices, 1u);
  EXPECT_EQ(choose_transfer_settings(16 * MiB, 1).piece_len, 4 * MiB);
  EXPECT_EQ(choose_transfer_settings(1024 * MiB, 1).piece_len, 8 * MiB);
  EXPECT_EQ(choose_transfer_settings(1024 * MiB, 8).devices, 8u);
  EXPECT_EQ(choose_transfer_settings(64 * MiB, 8).devices, 2u);
  EXPECT_EQ(choose_transfer_settings(8 * MiB, 1).piece_len, 2 * MiB);
  EXPECT_EQ(choose_transfer_settings(8 * MiB, 1, 512).piece_len, 9 * MiB);  // short messages
  EXPECT_EQ(choose_transfer_settings(256 * MiB, 1, 512).piece_len, 8 * MiB);
}

}  // namespace
}  // namespace warpcipher
