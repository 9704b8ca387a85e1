// SPDX-License-Identifier: Apache-2.0
// AES-GCM of the CPU engine against the reference engine: IVs, tags, AAD, the 32-bit counter, and bad tags, with
// messages whole and split over threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "cipher/gf128.hpp"
#include "cpu_engine_support.hpp"
#include "engine/cpu/modes.hpp"

namespace warpcipher {
namespace {

using namespace test;

TEST(CpuGcm, TakesGcmIvsTagsAndAadOfEveryLength) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(10);
  const std::size_t tile = std::size_t{16} * cpu_tile_units;
  for (const char* name : {"aes-128-gcm", "aes-192-gcm", "aes-256-gcm"}) {
    for (const Direction direction : directions) {
      for (const std::size_t iv_len : {1u, 7u, 8u, 11u, 12u, 13u, 16u, 17u, 60u, 127u, 128u, 129u, 144u, 1000u}) {
        for (const std::size_t tag_len : {4u, 8u, 12u, 13u, 14u, 15u, 16u}) {
          Sample sample(random, find_algorithm(name), direction, random() % 100);
          sample.iv = random_bytes(random, iv_len);
          sample.aad = random_bytes(random, random() % 3 == 0 ? 0 : random() % 300);
          sample.message.iv = sample.iv.data();
          sample.message.iv_len = iv_len;
          sample.message.aad = sample.aad.data();
          sample.message.aad_len = sample.aad.size();
          sample.message.tag_len = tag_len;
          expect_right(sample);
        }
      }
      for (const std::size_t iv_len : {1u, 12u, 16u, 300u}) {
        Sample sample(random, find_algorithm(name), direction, tile + random() % tile);
        sample.iv = random_bytes(random, iv_len);
        sample.aad = random_bytes(random, 1 + random() % 100);
        sample.message.iv = sample.iv.data();
        sample.message.iv_len = iv_len;
        sample.message.aad = sample.aad.data();
        sample.message.aad_len = sample.aad.size();
        sample.message.tag_len = 12 + random() % 5;
        expect_seamless(sample);
      }
    }
  }
}

// Tiles by libcrypto and by each code of this library, the last one first; whole, messages with an IV of 12 bytes go by
// the latter where the processor is good for it, and those with one of 16 by libcrypto.
TEST(CpuGcm, SplitsMessagesByEveryCode) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(17);
  std::vector<const cpu::GcmLanes*> codes(cpu::gcm_lanes_list().begin(), cpu::gcm_lanes_list().end());
  if (Libcrypto::is_here()) codes.push_back(nullptr);
  const std::size_t tile = std::size_t{16} * cpu_tile_units;
  for (const cpu::GcmLanes* const code : codes) {
    for (const Direction direction : directions) {
      for (const std::size_t iv_len : {12u, 16u}) {
        if (code == nullptr && direction == Direction::decrypt && !gives_decryption_tags()) continue;
        SCOPED_TRACE(code == nullptr ? "libcrypto" : code->name);
        Sample sample(random, find_algorithm("aes-192-gcm"), direction, 2 * tile + 1 + random() % tile);
        sample.iv = random_bytes(random, iv_len);
        sample.message.iv = sample.iv.data();
        sample.message.iv_len = iv_len;
        make_tag_right(sample);
        const Outcome want = expected_undivided(sample.message);
        const Message& m = sample.message;
        const Key key(m.algorithm(), {m.key->bytes(), m.key->size()});  // whose lanes are of this code
        Message of_key = m;
        of_key.key = &key;
        SplitGcm split(AesKey::of(key), of_key, 3, code);
        Status status = Status::engine_failure;
        for (const std::uint64_t i : {2u, 1u, 0u}) {
          EXPECT_EQ(split.run_tile(i, tile_piece(of_key, i, 3, nullptr), status), i == 0);
        }
        expect_outcome(sample, want, status);
      }
    }
  }
}

// Message::compute_tag: short messages, whole ones and split ones give the tag they should have had, and the plaintext.
TEST(CpuGcm, ComputesTheTagOfWhatItDecrypts) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(16);
  for (const std::size_t iv_len : {12u, 16u, 129u}) {
    for (const std::size_t len : {0u, 1u, 100u, 20000u, 4000000u}) {
      Sample sample(random, find_algorithm("aes-256-gcm"), Direction::encrypt, len);
      sample.iv = random_bytes(random, iv_len);
      Message& m = sample.message;
      m.iv = sample.iv.data();
      m.iv_len = iv_len;
      ASSERT_EQ(run_engine({&m, 1})[0], Status::ok);
      Bytes plaintext(len), tag(16), again(16);
      Message back = m;
      back.direction = Direction::decrypt;
      back.compute_tag = true;
      back.in = m.out;
      back.out = plaintext.data();
      back.tag = tag.data();
      EXPECT_EQ(run_with_threads({&back, 1}, 4)[0], Status::ok);
      EXPECT_EQ(tag, sample.tag) << len;
      EXPECT_EQ(plaintext, sample.in);
      back.tag = again.data();
      if (!Libcrypto::is_here()) continue;
      hash_gcm_ciphertext(AesKey::of(*m.key), back);
      EXPECT_EQ(again, tag);
    }
  }
}

// GCM's counter wraps at 2^32. No IV of 12 bytes begins near the wrap, but one of 16 can be solved for any J0.
TEST(CpuGcm, WrapsTheGcmCounterInsideASplitMessage) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(11);
  const Algorithm& algorithm = find_algorithm("aes-128-gcm");
  const std::size_t len = std::size_t{16} * cpu_tile_units * 3;
  for (const Direction direction : directions) {
    for (const std::uint32_t below : {1u, 2u, cpu_tile_units - 1, cpu_tile_units, cpu_tile_units + 1, 30000u}) {
      Sample sample(random, algorithm, direction, len);
      // J0 = GHASH(IV || 0^64 || [128]_64) = (IV H + [128]) H: SP 800-38D, section 7.1, step 2.
      sample.iv.assign(16, 0);
      Bytes zero(16);
      const Key blocks(find_algorithm("aes-128-ecb"), {sample.key->bytes(), 16});
      Message ecb;
      ecb.key = &blocks;
      ecb.in = zero.data();
      ecb.in_len = 16;
      const gf128::Element h = gf128::load(expected(ecb).text.data());
      gf128::Element inverse = gf128::gcm_one, square = h;
      for (int i = 1; i < 128; ++i) {
        square = gf128::gcm_multiply(square, square);
        inverse = gf128::gcm_multiply(inverse, square);
      }
      ASSERT_EQ(gf128::gcm_multiply(inverse, h), gf128::gcm_one);
      const gf128::Element counter0{random(), std::uint64_t{random()} << 32 | (0u - below)};
      const gf128::Element hashed = gf128::gcm_multiply(counter0, inverse);
      gf128::store(sample.iv.data(), gf128::gcm_multiply(gf128::add(hashed, {0, 128}), inverse));
      sample.message.iv = sample.iv.data();
      sample.message.iv_len = 16;
      if (random() % 2 != 0) sample.alias();
      expect_seamless(sample);
    }
  }
}

TEST(CpuGcm, WipesTheTextOfABadTagAndNothingElse) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(12);
  const std::size_t tile = std::size_t{16} * cpu_tile_units;
  for (const std::size_t len : {std::size_t{0}, std::size_t{50}, 2 * tile + 3}) {
    for (const bool in_place : {false, true}) {
      std::vector<Sample> samples;
      for (int i = 0; i < 5; ++i) {
        samples.emplace_back(random, find_algorithm("aes-256-gcm"), Direction::decrypt, len);
        if (in_place) samples.back().alias();
        make_tag_right(samples.back());
      }
      std::vector<Message> messages;
      for (const Sample& sample : samples) messages.push_back(sample.message);
      const Outcome second = expected_undivided(messages[1]);
      samples[0].tag[15] ^= 1;
      samples[2].tag[0] ^= 0x80;
      if (len > 0) const_cast<std::uint8_t*>(messages[3].in)[len - 1] ^= 1;
      messages[4].aad_len = 0;
      messages[4].iv_len = 11;
      for (const std::size_t threads : {std::size_t{1}, std::size_t{40}}) {
        std::vector<Bytes> texts;
        for (const Message& m : messages) texts.emplace_back(m.in, m.in + m.in_len);
        const std::vector<Status> statuses = run_with_threads(messages, threads);
        for (const std::size_t bad : {0u, 2u, 3u, 4u}) {
          if (len == 0 && bad == 3) continue;
          EXPECT_EQ(statuses[bad], Status::invalid_tag) << bad;
          EXPECT_EQ(Bytes(messages[bad].out, messages[bad].out + len), Bytes(len)) << bad;
          EXPECT_TRUE(samples[bad].guard_intact());
        }
        EXPECT_TRUE(outcome_of(messages[1], statuses[1]) == second);
        for (std::size_t i = 0; i < messages.size(); ++i) {  // what was in place is gone: put it back
          std::copy(texts[i].begin(), texts[i].end(), const_cast<std::uint8_t*>(messages[i].in));
        }
      }
    }
  }
}

}  // namespace
}  // namespace warpcipher
