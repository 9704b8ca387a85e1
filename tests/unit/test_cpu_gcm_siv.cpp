// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV of the CPU engine, by each instruction set of this processor and by libcrypto, against the reference:
// texts and AAD that fill vectors and groups of them and that do not, in place, misaligned, forged, and tags computed
// without a comparison.

#include <gtest/gtest.h>

#include <algorithm>

#include "cpu_aead_support.hpp"
#include "engine/cpu/modes.hpp"

namespace warpcipher {
namespace {

using namespace test;

// `code`: nullptr is libcrypto.
Status run(const cpu::GcmLanes* code, const Message& m) {
  return code != nullptr ? run_gcm_siv_by_own(*code, m) : run_gcm_siv_by_libcrypto(m);
}

std::vector<const cpu::GcmLanes*> all_codes() {
  std::vector<const cpu::GcmLanes*> codes = all_gcm_codes();
  if (Libcrypto::is_here()) codes.push_back(nullptr);
  return codes;
}

TEST(CpuGcmSiv, EqualsTheReference) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(8452);
  for (const cpu::GcmLanes* const code : all_codes()) {
    SCOPED_TRACE(code != nullptr ? code->name : "libcrypto");
    const auto run_code = [&](const Message& m) { return run(code, m); };
    for (const char* name : {"aes-128-gcm-siv", "aes-256-gcm-siv"}) {
      const Algorithm& algorithm = find_algorithm(name);
      for (std::size_t len = 0; len < 600; len += 7) {
        expect_aead_right(run_code, random, algorithm, len, random() % 3 == 0 ? random() % 600 : random() % 40);
      }
      for (int i = 0; i < 4; ++i) expect_aead_right(run_code, random, algorithm, random() % 20000, random() % 5000);
    }
  }
}

// The counter begins with the tag and wraps at 2^32: RFC 8452, appendix C.3.
TEST(CpuGcmSiv, WrapsItsCounter) {
  SKIP_WITHOUT_CPU_AES();
  constexpr std::uint8_t text[32] = {0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
                                     0,    0,    0,    0,    0,    0x4d, 0xb9, 0x23, 0xdc, 0x79, 0x3e,
                                     0xe6, 0x49, 0x7c, 0x76, 0xdc, 0xc0, 0x3a, 0x98, 0xe1, 0x08};
  constexpr std::uint8_t expected[32] = {0xf3, 0xf8, 0x0f, 0x2c, 0xf0, 0xcb, 0x2d, 0xd9, 0xc5, 0x98, 0x4f,
                                         0xcd, 0xa9, 0x08, 0x45, 0x6c, 0xc5, 0x37, 0x70, 0x3b, 0x5b, 0xa7,
                                         0x03, 0x24, 0xa6, 0x79, 0x3a, 0x7b, 0xf2, 0x18, 0xd3, 0xea};
  const std::uint8_t zeros[32] = {}, expected_tag[16] = {0xff, 0xff, 0xff, 0xff};
  for (const cpu::GcmLanes* const code : all_codes()) {
    const Key key(find_algorithm("aes-256-gcm-siv"), zeros);
    std::uint8_t out[32], tag[16];
    Message m;
    m.key = &key;
    m.in = text;
    m.in_len = m.out_len = sizeof text;
    m.out = out;
    m.iv = zeros;
    m.iv_len = 12;
    m.tag = tag;
    m.tag_len = sizeof tag;
    ASSERT_EQ(run(code, m), Status::ok);
    EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), out));
    EXPECT_TRUE(std::equal(std::begin(expected_tag), std::end(expected_tag), tag));
  }
}

}  // namespace
}  // namespace warpcipher
