// SPDX-License-Identifier: Apache-2.0
// The checker of the CPU engine's AEADs that have several codes, and which those of GCM are: a message by one of them
// against the reference engine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "cpu_engine_support.hpp"
#include "engine/cpu/lanes.hpp"

#if defined(__x86_64__)
namespace warpcipher::cpu {
extern const GcmLanes gcm_lanes_four_blocks;  // cpu_four_blocks_aesni.cpp
}
#endif

namespace warpcipher::test {

// The forms that this processor has, and the form of four blocks in a vector, which it may lack.
inline std::vector<const cpu::GcmLanes*> all_gcm_codes() {
  std::vector<const cpu::GcmLanes*> codes(cpu::gcm_lanes_list().begin(), cpu::gcm_lanes_list().end());
#if defined(__x86_64__)
  if (!codes.empty()) codes.push_back(&cpu::gcm_lanes_four_blocks);
#endif
  return codes;
}

using RunAead = std::function<Status(const Message&)>;

// Encrypts in place and misaligned, decrypts, computes a tag without a comparison where `computes_tags`, and refuses a
// forged one.
inline void expect_aead_right(const RunAead& run, std::mt19937& random, const Algorithm& algorithm, std::size_t len,
                              std::size_t aad_len, bool computes_tags = true) {
  SCOPED_TRACE(std::string(algorithm.name) + ", text " + std::to_string(len) + ", AAD " + std::to_string(aad_len));
  Sample sample(random, algorithm, Direction::encrypt, len);
  sample.aad = random_bytes(random, aad_len);
  const std::size_t shift = random() % 17;
  Bytes text = random_bytes(random, shift + len + 1);  // the last byte must not change
  const Bytes before = text;
  const auto is_plaintext = [&](const std::uint8_t* found) { return std::equal(found, found + len, &before[shift]); };
  Message m = sample.message;
  m.aad = sample.aad.data();
  m.aad_len = aad_len;
  m.in = m.out = text.data() + shift;
  m.in_len = m.out_len = len;
  const Outcome want = expected(m);

  ASSERT_EQ(run(m), Status::ok);
  EXPECT_TRUE(std::equal(m.in, m.in + len, want.text.begin()));
  EXPECT_EQ(sample.tag, want.tag);
  EXPECT_EQ(text.back(), before.back());

  Bytes back(len);
  m.direction = Direction::decrypt;
  m.out = back.data();
  ASSERT_EQ(run(m), Status::ok);
  EXPECT_TRUE(is_plaintext(back.data()));

  if (computes_tags) {
    Bytes iv = sample.iv;
    if (algorithm.mode.id == Mode::gcm_siv) iv.insert(iv.end(), want.tag.begin(), want.tag.end());
    Message computing = m;
    computing.compute_tag = true;
    computing.iv = iv.data();
    computing.iv_len = iv.size();
    std::fill(sample.tag.begin(), sample.tag.end(), 0);
    std::fill(back.begin(), back.end(), 0);
    ASSERT_EQ(run(computing), Status::ok);
    EXPECT_EQ(sample.tag, want.tag);
    EXPECT_TRUE(is_plaintext(back.data()));
  }

  sample.tag[random() % 16] ^= static_cast<std::uint8_t>(1u << random() % 8);
  m.out = text.data() + shift;  // in place
  EXPECT_EQ(run(m), Status::invalid_tag);
  EXPECT_TRUE(std::all_of(m.out, m.out + len, [](std::uint8_t byte) { return byte == 0; }));
  EXPECT_EQ(text.back(), before.back());
}

}  // namespace warpcipher::test
