// SPDX-License-Identifier: Apache-2.0
// The CPU engine's own AES-GCM against the obvious form: every instruction set this processor has,
// every key length, texts with AADs of any length, in place and misaligned. Every length of each:
// test_cpu_gcm_lengths.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "cpu_aead_support.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/engine.hpp"

namespace warpcipher::cpu {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Tag = std::array<std::uint8_t, 16>;

Bytes random_bytes(std::mt19937& random, std::size_t size) {
  Bytes bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

// The text encrypted by the reference engine, and its tag.
Bytes expected(const Bytes& key, const Bytes& iv, const GcmText& text, Tag& tag) {
  const Key object(find_algorithm("aes-" + std::to_string(8 * key.size()) + "-gcm"), key);
  Bytes out(text.len);
  Message m;
  m.key = &object;
  m.in = text.in;
  m.in_len = m.out_len = text.len;
  m.out = out.data();
  m.iv = iv.data();
  m.iv_len = iv.size();
  m.aad = text.aad;
  m.aad_len = text.aad_len;
  m.tag = tag.data();
  m.tag_len = tag.size();
  Status status = Status::ok;
  reference_engine().run(make_plan({&m, 1}, reference_engine().tile_units()), {&status, 1}, nullptr);
  return out;
}

// `step`: places of texts are multiples of it.
void expect_right(const GcmLanes& code, std::mt19937& random, std::size_t key_len, std::size_t len, std::size_t aad_len,
                  bool past_cache) {
  SCOPED_TRACE(std::string(code.name) + ", key " + std::to_string(key_len) + ", text " + std::to_string(len) +
               ", AAD " + std::to_string(aad_len));
  const Bytes key = random_bytes(random, key_len), iv = random_bytes(random, 12), aad = random_bytes(random, aad_len);
  const std::size_t shift = past_cache ? 16 * (random() % 4) : random() % 17;
  Bytes buffer = random_bytes(random, shift + len + 1);  // in place, misaligned, and a byte that must not change
  const Bytes before = buffer;
  Bytes counter0 = iv;
  counter0.insert(counter0.end(), {0, 0, 0, 1});
  const GcmText text{counter0.data(),       aad.data(), aad_len,           buffer.data() + shift,
                     buffer.data() + shift, len,        random() % 2 == 0, past_cache};
  Tag expected_tag{};
  const Bytes ciphertext = expected(key, iv, text, expected_tag);

  GcmLaneKey made;
  code.make_key(key.data(), key_len, made);
  std::uint8_t tag[16];
  code.encrypt(made, text, tag);
  EXPECT_TRUE(std::equal(ciphertext.begin(), ciphertext.end(), buffer.begin() + static_cast<std::ptrdiff_t>(shift)));
  EXPECT_TRUE(std::equal(expected_tag.begin(), expected_tag.end(), tag));
  EXPECT_EQ(buffer.back(), before.back());
  Bytes back(len);
  GcmText other = text;
  other.out = back.data();
  code.decrypt(made, other, tag);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), before.begin() + static_cast<std::ptrdiff_t>(shift)));
  EXPECT_TRUE(std::equal(expected_tag.begin(), expected_tag.end(), tag));
  code.decrypt(made, text, tag);
  EXPECT_EQ(buffer, before);
  EXPECT_TRUE(std::equal(expected_tag.begin(), expected_tag.end(), tag));
}

TEST(CpuGcmLanes, EqualTheObviousForm) {
  std::mt19937 random(12);
  for (const GcmLanes* const code : test::all_gcm_codes()) {
    for (const bool past_cache : {false, true}) {
      for (const std::size_t key_len : {16u, 24u, 32u}) {
        for (std::size_t len = 0; len < 600; len += 7) {
          const std::size_t aad_len = random() % 3 == 0 ? random() % 600 : random() % 40;
          expect_right(*code, random, key_len, len, aad_len, past_cache);
        }
        for (int i = 0; i < 6; ++i) expect_right(*code, random, key_len, random() % 20000, random() % 5000, past_cache);
      }
    }
  }
}

#if defined(__x86_64__)
// Whether upper halves of the first sixteen vector registers are in use, as the processor sees it (XGETBV with ECX =
// 1).
bool upper_halves_in_use() {
  std::uint32_t low, high;
  __asm__ __volatile__(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(1));
  constexpr std::uint32_t avx = 1u << 2, avx512 = 1u << 6;
  return (low & (avx | avx512)) != 0;
}

bool tells_what_is_in_use() {
  std::uint32_t a = 0xd, b, c = 1, d;
  __asm__ __volatile__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return __builtin_cpu_supports("avx") && (a & 1u << 2) != 0;
}

// SSE instructions after that wait: GCM of 65 to 511 bytes took up to four times as long.
TEST(CpuGcmLanes, LeaveNoUpperHalvesInUse) {
  if (!tells_what_is_in_use()) GTEST_SKIP() << "this processor does not tell";
  __asm__ __volatile__("vzeroupper");
  if (upper_halves_in_use()) GTEST_SKIP() << "this processor tells another thing";
  const Bytes key(16, 1), counter0(16, 2), aad(40, 3);
  Bytes text(1200);
  std::uint8_t tag[16];
  for (const GcmLanes* const code : test::all_gcm_codes()) {
    GcmLaneKey made;
    code->make_key(key.data(), key.size(), made);
    for (std::size_t len = 0; len <= text.size(); len += 16) {
      const GcmText whole{counter0.data(), aad.data(), aad.size(), text.data(), text.data(), len, true};
      const GcmSivText siv{counter0.data(), counter0.data(), aad.data(), aad.size(), text.data(), text.data(), len};
      code->encrypt(made, whole, tag);
      ASSERT_FALSE(upper_halves_in_use()) << code->name << ' ' << len;
      code->decrypt(made, whole, tag);
      ASSERT_FALSE(upper_halves_in_use()) << code->name << ' ' << len;
      code->siv_encrypt(made, siv, tag);
      ASSERT_FALSE(upper_halves_in_use()) << code->name << ' ' << len;
      code->siv_decrypt(made, siv, tag);
      ASSERT_FALSE(upper_halves_in_use()) << code->name << ' ' << len;
    }
  }
}
#endif

TEST(CpuGcmLanes, AreChosenByWhatTheProcessorHas) {
#if defined(__x86_64__)
  const bool basic = __builtin_cpu_supports("avx") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  EXPECT_EQ(!gcm_lanes_list().empty(), basic);
#else
  EXPECT_TRUE(gcm_lanes_list().empty());
#endif
  for (const GcmLanes* const code : gcm_lanes_list()) std::printf("%s\n", code->name);
}

}  // namespace
}  // namespace warpcipher::cpu
