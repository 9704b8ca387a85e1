// SPDX-License-Identifier: Apache-2.0
// The CPU engine against the reference engine: every algorithm, at lengths around blocks, tiles and counter wraps, in
// place and not, misaligned, alone and in batches, on one thread and many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/bytes.hpp"
#include "cpu_engine_support.hpp"
#include "engine/cpu/piece.hpp"
#include "engine/engine.hpp"

namespace warpcipher {
namespace {

using namespace test;

TEST(CpuEngine, MatchesTheReferenceAtEveryShortLength) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(1);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : directions) {
      for (std::size_t len = 0; len <= 70; ++len) {
        if (valid_len(algorithm, len) != len) continue;
        for (const bool in_place : {false, true}) {
          Sample sample(random, algorithm, direction, len);
          if (in_place) sample.alias();
          expect_right(sample);
        }
      }
    }
  }
}

TEST(CpuEngine, MatchesTheReferenceAtRandomLengths) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(2);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : directions) {
      for (int i = 0; i < 6; ++i) {
        Sample sample(random, algorithm, direction,
                      valid_len(algorithm, random() % (is_aes(algorithm.cipher.id) ? 9000 : 3000)));
        if (random() % 2 != 0) sample.alias();
        expect_right(sample);
      }
    }
  }
}

TEST(CpuEngine, AppliesPkcs7) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(3);
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.takes_padding()) continue;
    const std::size_t tile = cpu_tile_units * algorithm.unit_len();
    for (const bool in_place : {false, true}) {
      for (const std::size_t len : {0u, 1u, 7u, 8u, 15u, 16u, 33u, 4000u}) {
        Sample sample(random, algorithm, Direction::encrypt, len, Padding::pkcs7);
        if (in_place) sample.alias();
        expect_right(sample);
      }
      // Only the padding in a tile of its own, and not.
      for (const std::size_t len : {2 * tile - 1, 2 * tile, 2 * tile + 1}) {
        if (!algorithm.parallel(Direction::encrypt)) continue;
        Sample sample(random, algorithm, Direction::encrypt, len, Padding::pkcs7);
        if (in_place) sample.alias();
        expect_seamless(sample);
      }
    }
  }
}

TEST(CpuEngine, MatchesTheReferenceAtALengthWorthSplitting) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(14);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.cipher.id != CipherId::aes_256 && algorithm.cipher.id != CipherId::des) continue;
    for (const Direction direction : directions) {
      if (!algorithm.is_aead() && !algorithm.parallel(direction)) continue;  // a chain is not split
      const std::size_t len = (cpu_tile_units * 2 + 3) * algorithm.unit_len() + 5;
      Sample sample(random, algorithm, direction, valid_len(algorithm, len));
      make_tag_right(sample);
      const Outcome want = expected(sample.message);
      expect_outcome(sample, want, run_with_threads({&sample.message, 1}, 4)[0]);
    }
  }
}

TEST(CpuEngine, SplitsLongMessagesWithoutASeam) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(4);
  for (const Algorithm& algorithm : algorithms()) {
    const std::size_t tile = cpu_tile_units * algorithm.unit_len();
    for (const Direction direction : directions) {
      if (!algorithm.parallel(direction)) continue;
      for (const std::size_t len : {2 * tile, 2 * tile + algorithm.block_len(), 3 * tile + algorithm.block_len() + 5}) {
        Sample sample(random, algorithm, direction, valid_len(algorithm, len));
        if (random() % 2 != 0) sample.alias();
        expect_seamless(sample);
      }
    }
  }
}

// The cases above are only worth something if messages are in fact split.
TEST(CpuEngine, SchedulesTilesOfLongMessagesAndNotOfMany) {
  std::mt19937 random(5);
  const Algorithm& ctr = find_algorithm("aes-128-ctr");
  const std::size_t tile_len = std::size_t{16} * cpu_tile_units;
  const Sample lengthy(random, ctr, Direction::encrypt, 3 * tile_len + 1);
  const Plan one = make_plan({&lengthy.message, 1}, cpu_tile_units);
  EXPECT_EQ(make_schedule(one, 4).split.size(), 1u);
  EXPECT_EQ(make_schedule(one, 4).grains.size(), 4u);
  EXPECT_TRUE(make_schedule(one, 1).split.empty());

  const std::vector<Message> same(100, lengthy.message);
  const Plan many = make_plan(same, cpu_tile_units);
  const Schedule schedule = make_schedule(many, 4);
  EXPECT_TRUE(schedule.split.empty());
  std::uint64_t next = 0;
  for (const Grain& grain : schedule.grains) {
    EXPECT_EQ(grain.first, next);
    next = grain.last;
  }
  EXPECT_EQ(next, same.size());
}

TEST(CpuEngine, TakesMisalignedBuffers) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(6);
  for (const Algorithm& algorithm : algorithms()) {
    for (const Direction direction : directions) {
      Sample sample(random, algorithm, direction, valid_len(algorithm, 1000));
      make_tag_right(sample);
      const Outcome want = expected(sample.message);
      Bytes in(sample.in.size() + 16), out(in.size() + 16);
      for (std::size_t in_at = 1; in_at < 16; in_at += 2) {
        Message m = sample.message;
        std::copy(sample.in.begin(), sample.in.end(), in.begin() + static_cast<std::ptrdiff_t>(in_at));
        m.in = in.data() + in_at;
        m.out = out.data() + (in_at * 7) % 16;
        const Status status = run_engine({&m, 1})[0];
        EXPECT_TRUE(outcome_of(m, status) == want) << algorithm.name << " at " << in_at;
      }
    }
  }
}

TEST(CpuEngine, RunsBatchesOfEverythingTogether) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(7);
  std::vector<Sample> samples;
  for (int i = 0; i < 900; ++i) {
    const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
    const Direction direction = directions[random() % 2];
    const bool padded = algorithm.takes_padding() && direction == Direction::encrypt && random() % 2 != 0;
    const std::size_t len = random() % (i % 100 == 0 ? 150000 : i % 3 == 0 ? 3000 : 40);
    samples.emplace_back(random, algorithm, direction, padded ? len : valid_len(algorithm, len),
                         padded ? Padding::pkcs7 : Padding::none);
    if (random() % 2 != 0) samples.back().alias();
    make_tag_right(samples.back());
  }
  std::vector<Message> messages;
  std::vector<Outcome> want;
  for (const Sample& sample : samples) {
    messages.push_back(sample.message);
    want.push_back(expected(sample.message));
  }
  const std::vector<Status> statuses = run_with_threads(messages, 5);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_TRUE(outcome_of(messages[i], statuses[i]) == want[i])
        << "message " << i << ", " << messages[i].algorithm().name;
    EXPECT_TRUE(samples[i].guard_intact());
  }
}

// More messages than lanes, of lengths that end at different steps.
TEST(CpuEngine, FillsTheLanesOfSerialDes) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(8);
  for (const char* name : {"des-cbc", "des-ede2-cfb", "des-ede3-cfb8", "des-ede3-ofb", "des-ede3-cbc"}) {
    const Algorithm& algorithm = find_algorithm(name);
    std::vector<Sample> samples;
    std::vector<Message> messages;
    std::vector<Outcome> want;
    for (int i = 0; i < 1100; ++i) {
      samples.emplace_back(random, algorithm, Direction::encrypt, valid_len(algorithm, random() % 90));
      messages.push_back(samples.back().message);
      want.push_back(expected(messages.back()));
    }
    const std::vector<Status> statuses = run_engine(messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      EXPECT_TRUE(outcome_of(messages[i], statuses[i]) == want[i]) << name << " message " << i;
    }
  }
}

TEST(CpuEngine, WrapsCountersAt32And128Bits) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(9);
  for (const char* name : {"aes-128-ctr", "aes-192-ctr", "aes-256-ctr"}) {
    for (const unsigned bytes_of_ones : {4u, 8u, 16u}) {
      for (const unsigned below : {1u, 5u, 200u}) {
        for (const bool long_text : {false, true}) {
          Sample sample(random, find_algorithm(name), Direction::encrypt,
                        long_text ? std::size_t{16} * cpu_tile_units * 2 + 77 : 4000);
          std::memset(sample.iv.data() + 16 - bytes_of_ones, 0xff, bytes_of_ones);
          sample.iv[15] = static_cast<std::uint8_t>(0xff - below);
          long_text ? expect_seamless(sample) : expect_right(sample);
        }
      }
    }
    // The wrap in a later tile: the counter passes 2^128 and 2^32 one block into the second.
    Sample sample(random, find_algorithm(name), Direction::encrypt, std::size_t{16} * cpu_tile_units * 2);
    std::memset(sample.iv.data(), 0xff, 16);
    store_be32(sample.iv.data() + 12, 0u - cpu_tile_units - 1);
    expect_seamless(sample);
  }
}

TEST(CpuEngine, ManyThreadsShareOneKey) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(13);
  Sample sample(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 100);
  const Outcome want = expected(sample.message);
  std::vector<Bytes> outs(2000, Bytes(100)), tags(2000, Bytes(16));
  ThreadPool pool(9);
  pool.parallel_for(outs.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Message m = sample.message;
      m.out = outs[i].data();
      m.tag = tags[i].data();
      run_engine({&m, 1});
    }
  });
  EXPECT_EQ(std::count(outs.begin(), outs.end(), want.text), 2000);
  EXPECT_EQ(std::count(tags.begin(), tags.end(), want.tag), 2000);
}

TEST(CpuEngine, SaysWhatItRunsOn) {
  ASSERT_EQ(cpu_engine().devices().size(), 1u);
  const std::string_view libcrypto = Libcrypto::is_here() ? "OpenSSL 3." : "libcrypto.so.3 cannot be loaded";
  EXPECT_NE(cpu_engine().devices()[0].find(libcrypto), std::string::npos) << cpu_engine().devices()[0];
  EXPECT_EQ(std::string(cpu_engine().description()).find("OpenSSL 3.") != std::string::npos, Libcrypto::is_here());
  EXPECT_TRUE(cpu_engine().constant_time(find_algorithm("des-ede3-cbc")));
}

// Triple DES and AES, in one batch: nothing is written.
TEST(CpuEngine, SaysThatAesNeedsLibcryptoWhereNothingElseHasIt) {
  if (has_cpu_aes()) GTEST_SKIP() << "AES runs here: " << cpu_engine().description();
  std::mt19937 random(23);
  Sample des(random, find_algorithm("des-ede3-cbc"), Direction::encrypt, 64);
  Sample aes(random, find_algorithm("aes-256-ctr"), Direction::encrypt, 64);
  const Bytes before = des.out;
  const std::vector<Message> messages{des.message, aes.message};
  for (const std::size_t first : {0u, 1u}) {
    try {
      run_engine(std::span(messages).subspan(first));
      ADD_FAILURE() << "did not throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::engine_unavailable);
      EXPECT_NE(std::string(error.what()).find("aes-256-ctr"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("libcrypto.so.3"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(des.out, before);
  expect_right(des);
}

}  // namespace
}  // namespace warpcipher
