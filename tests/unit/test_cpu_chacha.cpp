// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 and XChaCha20-Poly1305 of the CPU engine, by own code and by libcrypto, against the reference; and
// pieces of ChaCha20 of every length, short ones by the one and long ones by the other.

#include <gtest/gtest.h>

#include "cpu_aead_support.hpp"
#include "engine/cpu/chacha.hpp"

namespace warpcipher {
namespace {

using namespace test;

void expect_equal(const RunAead& run, bool computes_tags) {
  std::mt19937 random(8439);
  for (const char* name : {"chacha20-poly1305", "xchacha20-poly1305"}) {
    const Algorithm& algorithm = find_algorithm(name);
    for (std::size_t len = 0; len < 300; len += len < 140 ? 1 : 11) {
      expect_aead_right(run, random, algorithm, len, random() % 3 == 0 ? random() % 600 : random() % 40, computes_tags);
    }
    for (int i = 0; i < 4; ++i) {
      expect_aead_right(run, random, algorithm, random() % 20000, random() % 5000, computes_tags);
    }
  }
}

TEST(CpuChaCha, OwnCodeEqualsTheReference) { expect_equal(run_chacha_by_own, true); }

TEST(CpuChaCha, LibcryptoEqualsTheReference) {
  if (!Libcrypto::is_here()) GTEST_SKIP() << "no libcrypto";
  expect_equal(run_chacha_by_libcrypto, false);
}

TEST(CpuChaCha, TheChoiceBetweenThemEqualsTheReference) { expect_equal(run_chacha_message, true); }

// Longer than an update of libcrypto.
TEST(CpuChaCha, TakesALongMessage) {
  std::mt19937 random(3);
  for (const char* name : {"chacha20-poly1305", "xchacha20-poly1305"}) {
    expect_aead_right(run_chacha_message, random, find_algorithm(name), (std::size_t{256} << 10) + 77, 5);
  }
}

TEST(CpuChaCha, PiecesOfAStreamJoin) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    Sample sample(random, find_algorithm("chacha20"), Direction::encrypt, random() % 3000);
    const Message& m = sample.message;
    const Outcome want = expected(m);
    const std::size_t cut = m.in_len / 2 / 64 * 64;
    run_chacha_piece(m, {m.in, m.out, cut, 0, nullptr, false});
    run_chacha_piece(m, {m.in + cut, m.out + cut, m.in_len - cut, cut / 64, nullptr, true});
    EXPECT_TRUE(std::equal(want.text.begin(), want.text.begin() + static_cast<std::ptrdiff_t>(m.in_len), m.out));
  }
}

}  // namespace
}  // namespace warpcipher
