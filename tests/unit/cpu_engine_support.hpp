// SPDX-License-Identifier: Apache-2.0
// The checker of the CPU engine's tests: runs a message through it, on as many threads as wanted, and holds what comes
// out against the reference engine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/cpu/libcrypto.hpp"
#include "engine/cpu/piece.hpp"
#include "engine/cpu/schedule.hpp"
#include "engine/engine.hpp"
#include "support.hpp"

namespace warpcipher::test {

inline constexpr Direction directions[] = {Direction::encrypt, Direction::decrypt};

// It has all of AES or nothing of it.
inline bool has_cpu_aes() { return cpu_engine().offers(find_algorithm("aes-128-gcm")); }

#define SKIP_WITHOUT_CPU_AES() \
  if (!has_cpu_aes()) GTEST_SKIP() << cpu_engine().description()

struct Outcome {
  Bytes text, tag;
  Status status;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// The reference engine's result for a message, without touching its buffers.
inline Outcome expected(const Message& m) {
  Outcome outcome{Bytes(m.output_len()), Bytes(m.tag, m.tag + m.tag_len), Status::ok};
  Message copy = m;
  copy.out = outcome.text.data();
  copy.out_len = outcome.text.size();
  copy.tag = outcome.tag.data();
  const Plan plan = make_plan({&copy, 1}, reference_engine().tile_units());
  reference_engine().run(plan, {&outcome.status, 1}, nullptr);
  return outcome;
}

inline Outcome outcome_of(const Message& m, Status status) {
  return {Bytes(m.out, m.out + m.output_len()), Bytes(m.tag, m.tag + m.tag_len), status};
}

// Runs the messages through the engine as run() does, on as many threads as it likes.
inline std::vector<Status> run_engine(std::span<const Message> messages) {
  check_messages(messages);
  if (messages.size() == 1) return {cpu_engine().run_one(messages[0], nullptr)};
  std::vector<Status> statuses(messages.size(), Status::engine_failure);
  cpu_engine().run(make_plan(messages, cpu_engine().tile_units()), statuses, nullptr);
  return statuses;
}

// Runs them as a machine with `threads` cores would, whatever this one has.
inline std::vector<Status> run_with_threads(std::span<const Message> messages, std::size_t threads) {
  std::vector<Status> statuses(messages.size(), Status::ok);
  const Plan plan = make_plan(messages, cpu_engine().tile_units());
  ThreadPool pool(threads);
  run_schedule(plan, make_schedule(plan, threads), pool, statuses);
  return statuses;
}

// The same by the CPU engine on one thread, which splits nothing.
inline Outcome expected_undivided(const Message& m) {
  Outcome outcome{Bytes(m.output_len()), Bytes(m.tag, m.tag + m.tag_len), Status::ok};
  Message copy = m;
  copy.out = outcome.text.data();
  copy.out_len = outcome.text.size();
  copy.tag = outcome.tag.data();
  outcome.status = run_with_threads({&copy, 1}, 1)[0];
  return outcome;
}

// A ciphertext with its right tag, so that decryption is tested where it succeeds.
inline void make_tag_right(Sample& sample) {
  if (!sample.message.algorithm().is_aead() || sample.message.direction == Direction::encrypt) return;
  Message plain = sample.message;
  plain.direction = Direction::encrypt;
  const Outcome sealed = plain.in_len < 100000 ? expected(plain) : expected_undivided(plain);
  std::copy(sealed.text.begin(), sealed.text.end(), const_cast<std::uint8_t*>(sample.message.in));
  std::copy(sealed.tag.begin(), sealed.tag.end(), sample.message.tag);
}

inline void expect_outcome(const Sample& sample, const Outcome& want, Status status) {
  const Message& m = sample.message;
  ASSERT_EQ(want.status, Status::ok);
  EXPECT_TRUE(outcome_of(m, status) == want)
      << m.algorithm().name << (m.direction == Direction::encrypt ? " encrypt " : " decrypt ") << m.in_len
      << " bytes, padding " << static_cast<int>(m.padding) << ", in place " << (m.in == m.out) << ", IV of " << m.iv_len
      << ", tag of " << m.tag_len;
  EXPECT_TRUE(sample.guard_intact()) << m.algorithm().name;
}

// The engine as it is called, against the reference.
inline void expect_right(Sample& sample) {
  make_tag_right(sample);
  const Outcome want = expected(sample.message);
  expect_outcome(sample, want, run_engine({&sample.message, 1})[0]);
}

// The message split over four threads, against the same engine on one. That result is held against the reference
// elsewhere; the reference takes seconds for lengths worth splitting.
inline void expect_seamless(Sample& sample) {
  make_tag_right(sample);
  const Outcome want = expected_undivided(sample.message);
  const Algorithm& algorithm = sample.message.algorithm();
  const bool adds_up = sample.message.direction == Direction::encrypt || splits_decryption();
  const Mode mode = algorithm.mode.id;
  const bool split = !algorithm.is_aead() || mode == Mode::poly1305 || (mode == Mode::gcm && adds_up);
  ASSERT_EQ(make_schedule(make_plan({&sample.message, 1}, cpu_tile_units), 4).split.size(), split ? 1u : 0u);
  expect_outcome(sample, want, run_with_threads({&sample.message, 1}, 4)[0]);
}

}  // namespace warpcipher::test
