// SPDX-License-Identifier: Apache-2.0
// One batch on two engines at once comes out as on one: wherever it is cut, whatever the chain, and when it fails.
#include <gtest/gtest.h>

#include <deque>

#include "engine/cpu/piece.hpp"
#include "engine/engine.hpp"
#include "flow/host_transfer.hpp"
#include "host_device_engine.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using test::HostDeviceEngine;
using test::Sample;

bool has_cpu() { return cpu_engine().offers(find_algorithm("aes-128-ctr")); }

// The engine of the host that takes the CPU's share.
Engine& host(bool fast) { return fast && has_cpu() ? cpu_engine() : reference_engine(); }

// libcrypto lets the threads of the pool free what it keeps for each only until its own clean-up at exit, which comes
// before the end of the threads if the pool is older than libcrypto's first work. LeakSanitizer sees that.
class Share : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!has_cpu()) return;
    std::mt19937 random(1);
    const Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 16);
    Status status = Status::ok;
    cpu_engine().run(make_plan({&sample.message, 1}, cpu_engine().tile_units()), {&status, 1}, nullptr);
  }
};

std::vector<Message> messages_of(std::deque<Sample>& samples) {
  std::vector<Message> messages;
  for (Sample& s : samples) messages.push_back(s.message);
  return messages;
}

// The expected result, as `engine` has it.
struct Expected {
  Expected(std::deque<Sample>& samples, Engine& engine) : statuses(samples.size(), Status::ok) {
    std::vector<Message> messages;
    for (Sample& s : samples) {
      Message m = s.message;
      m.out = out.emplace_back(s.out).data();
      m.tag = tag.emplace_back(s.tag).data();
      messages.push_back(m);
    }
    engine.run(make_plan(messages, engine.tile_units()), statuses, nullptr);
  }

  std::vector<Status> statuses;
  std::deque<test::Bytes> out, tag;
};

// Runs copies of the samples on both, and holds everything that may be written against what is expected.
void expect_shared(std::deque<Sample>& samples, const Expected& expected, std::size_t device_len, bool in_place,
                   bool fast) {
  HostDeviceEngine device;
  device.all_pinned = device_len % 3 == 0;
  std::vector<Message> messages = messages_of(samples);
  std::deque<test::Bytes> out, tag;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Sample& s = samples[i];
    messages[i].out = out.emplace_back(s.out).data();
    messages[i].tag = tag.emplace_back(s.tag).data();
    if (!in_place) continue;
    std::copy(s.in.begin(), s.in.end(), out[i].begin());
    messages[i].in = messages[i].out;
  }
  std::vector<Status> statuses(samples.size(), Status::ok);
  run_on_both(device, host(fast), messages, statuses, device_len);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Message& m = messages[i];
    SCOPED_TRACE(std::string(m.algorithm().name) + (m.direction == Direction::encrypt ? " encrypt " : " decrypt ") +
                 std::to_string(m.in_len) + " cut at " + std::to_string(device_len) + (in_place ? " in place" : ""));
    EXPECT_EQ(statuses[i], expected.statuses[i]);
    EXPECT_EQ(0, std::memcmp(m.out, expected.out[i].data(), m.output_len()));
    EXPECT_EQ(tag[i], expected.tag[i]);
    for (std::size_t at = m.in_len + 16; at < out[i].size(); ++at) ASSERT_EQ(out[i][at], Sample::guard_byte);
  }
  EXPECT_TRUE(device.balanced());
}

// Replaces the text of a decryption by ciphertext whose tag is right.
void seal(Sample& sample) {
  Message m = sample.message;
  if (!m.algorithm().is_aead()) return;
  m.direction = Direction::encrypt;
  test::Bytes ciphertext(m.in_len);
  m.out = ciphertext.data();
  Status status = Status::ok;
  Engine& engine = host(m.in_len > 10000);
  engine.run(make_plan({&m, 1}, engine.tile_units()), {&status, 1}, nullptr);
  std::copy(ciphertext.begin(), ciphertext.end(), sample.in.begin());
}

std::deque<Sample> one_sample(std::mt19937& random, const Algorithm& algorithm, Direction direction, std::size_t len) {
  std::deque<Sample> one;
  one.emplace_back(random, algorithm, direction, test::valid_len(algorithm, len));
  if (direction == Direction::decrypt) seal(one[0]);
  return one;
}

TEST_F(Share, EveryAlgorithmIsCutWithTheRightChain) {
  std::mt19937 random(1);
  struct Case {
    std::size_t len;
    std::vector<std::size_t> cuts;
  };
  const Case cases[] = {{0, {0, 1}},
                        {1, {0, 1}},
                        {15, {15, 16}},
                        {16, {0, 15, 17}},
                        {17, {16, 17}},
                        {256, {255, 256}},
                        {257, {256}},
                        {271, {256, 270}},
                        {272, {256, 257}},
                        {273, {256, 272}},
                        {785, {0, 1, 255, 257, 512, 767, 768, 784, 785, 1000}}};
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (const Case& c : cases) {
        std::deque<Sample> one = one_sample(random, algorithm, direction, c.len);
        const Expected expected(one, reference_engine());
        for (const std::size_t cut : c.cuts) {
          expect_shared(one, expected, cut, false, cut % 2 == 0);
          expect_shared(one, expected, cut, true, cut % 2 != 0);
        }
      }
    }
  }
}

// Around the tiles of a device's plans (256 blocks) and of the CPU's, whose share is long enough for several threads.
TEST_F(Share, CutsAtTheEdgesOfTiles) {
  if (!has_cpu()) GTEST_SKIP() << cpu_engine().description();
  std::mt19937 random(2);
  constexpr std::size_t tile = 4096, cpu_tile = std::size_t{16} * cpu_tile_units;
  for (const char* name : {"aes-128-ctr", "aes-128-cbc", "aes-256-gcm", "aes-192-cfb", "aes-256-xts", "aes-128-ecb"}) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      std::deque<Sample> one = one_sample(random, find_algorithm(name), direction, tile + 3 * cpu_tile + 17);
      const Expected expected(one, cpu_engine());
      for (const std::size_t cut : {tile - 256, tile, tile + 256}) expect_shared(one, expected, cut, cut == tile, true);
    }
  }
}

TEST_F(Share, CountersWrapAtTheCut) {
  std::mt19937 random(3);
  constexpr std::size_t len = 1024, cut = 512, blocks = cut / 16;
  for (const std::size_t before : {blocks - 1, blocks, blocks + 1}) {  // blocks until the counter is zero
    for (const bool all_128_bits : {false, true}) {
      std::deque<Sample> one = one_sample(random, find_algorithm("aes-192-ctr"), Direction::encrypt, len);
      test::Bytes& iv = one[0].iv;
      std::fill(iv.begin() + (all_128_bits ? 0 : 12), iv.end(), 0xff);
      iv[15] = static_cast<std::uint8_t>(256 - before);
      const Expected expected(one, reference_engine());
      expect_shared(one, expected, cut, false, true);
      expect_shared(one, expected, cut, false, false);
    }
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      std::deque<Sample> one = one_sample(random, find_algorithm("aes-128-gcm"), direction, len);
      // An IV of 16 bytes whose J0 has a last word of 2^32 - 1 - before: the text begins one on.
      std::uint8_t solved[16];
      GcmPieces(one[0].message).iv_at((std::uint64_t{1} << 32) - 2 - before, solved);
      one[0].iv.assign(solved, solved + 16);
      one[0].message.iv = one[0].iv.data();
      one[0].message.iv_len = 16;
      if (direction == Direction::decrypt) seal(one[0]);
      const Expected expected(one, reference_engine());
      ASSERT_EQ(expected.statuses[0], Status::ok);
      expect_shared(one, expected, cut, false, true);
      expect_shared(one, expected, cut, true, false);
    }
  }
}

TEST_F(Share, PadsTheRestAlone) {
  std::mt19937 random(4);
  for (const char* name : {"aes-128-ecb", "des-ede3-ecb", "aes-256-cbc"}) {
    for (std::size_t len = 505; len < 525; ++len) {
      std::deque<Sample> one;
      one.emplace_back(random, find_algorithm(name), Direction::encrypt, len, Padding::pkcs7);
      const Expected expected(one, reference_engine());
      for (const std::size_t cut : {256u, 512u}) expect_shared(one, expected, cut, false, len % 2 == 0);
    }
  }
}

TEST_F(Share, BatchesOfEveryKindAreCutOnceAtMost) {
  std::mt19937 random(5);
  for (const bool in_place : {false, true}) {
    std::deque<Sample> many;
    std::size_t total = 0;
    for (int i = 0; i < 100; ++i) {
      const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
      const std::size_t len = random() % (i % 10 == 0 ? 3000 : 300);
      const auto direction = static_cast<Direction>(random() % 2);
      many.emplace_back(random, algorithm, direction, test::valid_len(algorithm, len));
      if (i % 3 != 0 && direction == Direction::decrypt) seal(many.back());
      total += len;
    }
    const Expected expected(many, reference_engine());
    for (int i = 0; i < 8; ++i) expect_shared(many, expected, random() % total, in_place, i % 2 == 0);
    for (int i = 0; i < 100; ++i) {
      const std::size_t wanted = random() % total;
      const std::vector<Message> messages = messages_of(many);
      const Shares shares = share_out(messages, wanted);
      EXPECT_LE(shares.device.size() + shares.cpu.size(), messages.size() + 1);
      std::size_t device = 0;
      for (const Part& part : shares.device) device += part.message.in_len;
      EXPECT_LE(device, wanted);
    }
  }
}

TEST_F(Share, ABadTagLeavesZerosOnBothSides) {
  std::mt19937 random(6);
  for (const std::size_t len : {600u, 1024u}) {
    for (const std::size_t cut : {std::size_t{0}, std::size_t{256}, len + 512, 3 * len}) {
      for (const bool in_place : {false, true}) {
        std::deque<Sample> samples;
        for (int i = 0; i < 3; ++i) {
          samples.push_back(std::move(one_sample(random, find_algorithm("aes-256-gcm"), Direction::decrypt, len)[0]));
          samples.back().message.tag_len = 12;
        }
        for (const std::size_t bad : {0u, 1u}) samples[bad].tag[11 * bad] ^= 0x40;
        const Expected expected(samples, reference_engine());
        ASSERT_EQ(expected.statuses, (std::vector<Status>{Status::invalid_tag, Status::invalid_tag, Status::ok}));
        ASSERT_EQ(test::Bytes(expected.out[1].begin(), expected.out[1].begin() + 600), test::Bytes(600, 0));
        for (const bool fast : {false, true}) expect_shared(samples, expected, cut, in_place, fast);
      }
    }
  }
}

class FailingEngine final : public Engine {
 public:
  EngineId id() const override { return EngineId::cpu; }
  std::string_view name() const override { return "failing"; }
  std::string_view description() const override { return "fails after the work is done"; }
  Memory memory() const override { return Memory::host; }
  bool constant_time(const Algorithm&) const override { return false; }
  bool offers(const Algorithm&) const override { return true; }
  const std::string& unavailable_reason() const override { return reference_engine().unavailable_reason(); }
  std::vector<std::string> devices() const override { return {}; }
  std::uint32_t tile_units() const override { return 256; }
  void run(const Plan& plan, std::span<Status> statuses, Stream stream) override {
    reference_engine().run(plan, statuses, stream);
    throw Error(Status::engine_failure, "planted failure");
  }
};

TEST_F(Share, AFailureOfEitherLeavesNoUncheckedText) {
  std::mt19937 random(7);
  constexpr std::size_t len = 2000;
  for (const bool device_fails : {false, true}) {
    std::deque<Sample> one = one_sample(random, find_algorithm("aes-128-gcm"), Direction::decrypt, len);
    HostDeviceEngine device;
    device.fail_on_run = device_fails ? 1 : 0;
    FailingEngine failing;
    Engine& cpu = device_fails ? reference_engine() : static_cast<Engine&>(failing);
    std::vector<Status> statuses(1, Status::ok);
    EXPECT_THROW(run_on_both(device, cpu, messages_of(one), statuses, 1024), Error);
    EXPECT_EQ(test::Bytes(one[0].out.begin(), one[0].out.begin() + len), test::Bytes(len, 0));
    EXPECT_TRUE(device.balanced());
  }
}

TEST_F(Share, TheDevicesLengthIsAligned) {
  std::mt19937 random(8);
  std::deque<Sample> samples;
  for (int i = 0; i < 2; ++i) samples.emplace_back(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 500000);
  const std::vector<Message> messages = messages_of(samples);
  EXPECT_EQ(device_len(messages, 1), 0u);
  EXPECT_EQ(device_len(messages, 0.5), 7u * 65536);
  EXPECT_EQ(device_len(messages, 0), 15u * 65536);
}

}  // namespace
}  // namespace warpcipher
