// SPDX-License-Identifier: Apache-2.0
// The CPU engine's AES against the obvious form: its own code for every instruction set that this processor has, and
// libcrypto's, each forced, every mode and direction of own code, every length to 4096 bytes, in place, misaligned,
// with counters that wrap.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cpu_engine_support.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/cpu/modes.hpp"
#include "engine/cpu/rule.hpp"

namespace warpcipher {

#if defined(__x86_64__)
namespace cpu {
extern const AesLanes aes_lanes_four_blocks;  // cpu_four_blocks_aesni.cpp
}
#endif

namespace {

using namespace test;

// libcrypto's code, or own code.
struct Form {
  std::string name = "libcrypto";
  const cpu::AesLanes* code = nullptr;
  bool past_cache = false;

  void run(const Message& m, const Piece& piece) const {
    AesKey& key = AesKey::of(*m.key);
    if (code == nullptr) return run_libcrypto_piece(key, m, piece);
    (past_cache ? run_past_cache : run_in_cache)(*code, key, m, piece);
  }
};

// The engine's lanes for this processor, and the form of AVX-512 in vectors of 128 bits.
std::vector<Form> forms() {
  std::vector<Form> all;
  if (Libcrypto::is_here()) all.push_back({});
  std::vector<const cpu::AesLanes*> codes(cpu::aes_lanes_list().begin(), cpu::aes_lanes_list().end());
#if defined(__x86_64__)
  if (!codes.empty()) codes.push_back(&cpu::aes_lanes_four_blocks);
#endif
  for (const cpu::AesLanes* code : codes) {
    all.push_back({code->name, code});
    all.push_back({std::string(code->name) + "_past_cache", code, true});
  }
  return all;
}

struct Kind {
  const char* mode;
  Direction direction;
};

constexpr Kind kinds[] = {
    {"ecb", Direction::encrypt}, {"ecb", Direction::decrypt},  {"cbc", Direction::decrypt},
    {"cfb", Direction::decrypt}, {"cfb8", Direction::decrypt}, {"ctr", Direction::encrypt},
    {"ctr", Direction::decrypt}, {"xts", Direction::encrypt},  {"xts", Direction::decrypt},
};

// The message by `form`, at out and in place, `any_shift` bytes from an aligned place, against `want`. Past the cache a
// text is at a multiple of a block, and not in place.
void expect_right(const Form& form, const Message& given, std::size_t len, std::size_t any_shift,
                  const std::uint8_t* want) {
  constexpr std::size_t guard = 64;
  const std::size_t shift = form.past_cache ? 16 * (any_shift % 4) : any_shift;
  Message m = given;
  m.in_len = len;
  for (const bool in_place : {false, true}) {
    if (in_place && form.past_cache) continue;
    Bytes in(len + shift), out(shift + len + guard, Sample::guard_byte);
    std::copy(given.in, given.in + len, in.begin() + static_cast<std::ptrdiff_t>(shift));
    m.in = in.data() + shift;
    m.out = out.data() + shift;
    if (in_place) {
      std::copy(given.in, given.in + len, m.out);
      m.in = m.out;
    }
    form.run(m, whole_piece(m));
    ASSERT_TRUE(std::equal(want, want + len, m.out))
        << form.name << ' ' << m.algorithm().name << (m.direction == Direction::encrypt ? " encrypt " : " decrypt ")
        << len << " bytes, shifted by " << shift << ", in place " << in_place;
    ASSERT_TRUE(std::all_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(shift),
                            [](std::uint8_t byte) { return byte == Sample::guard_byte; }));
    ASSERT_TRUE(std::all_of(out.end() - guard, out.end(), [](std::uint8_t byte) { return byte == Sample::guard_byte; }))
        << form.name << ' ' << m.algorithm().name << " wrote after " << len << " bytes";
  }
}

class CpuAesLanes : public testing::TestWithParam<Form> {};

TEST_P(CpuAesLanes, EqualTheObviousFormAtEveryLength) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(31);
  for (const Kind& kind : kinds) {
    for (const Algorithm& algorithm : algorithms()) {
      if (!is_aes(algorithm.cipher.id) || algorithm.mode.name != kind.mode) continue;
      const Sample sample(random, algorithm, kind.direction, 4096);
      const Outcome whole = expected(sample.message);
      for (std::size_t len = 0; len <= 4096; ++len) {
        if (valid_len(algorithm, len) != len) continue;
        // Beyond two groups and their rest: each ninth, another for each key size.
        if (len > 1200 && len % 9 != static_cast<std::size_t>(algorithm.cipher.id) % 9) continue;
        Message m = sample.message;
        m.in_len = len;
        // The beginning of a text becomes what it becomes alone, except where ciphertext is stolen. That is done alike
        // in each group, of 512 bytes at most, and the reference takes long.
        const bool steals = algorithm.mode.steals && len % 16 != 0;
        if (steals && len > 1200 && len % 16 != len / 16 % 16) continue;
        const Bytes want = steals ? expected(m).text : whole.text;
        expect_right(GetParam(), sample.message, len, random() % 33, want.data());
      }
    }
  }
}

TEST_P(CpuAesLanes, CountersWrap) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(32);
  for (const std::size_t ones : {4u, 8u, 12u, 16u}) {  // bytes at the end of the counter: 2^32, 2^64, 2^96, 2^128
    for (std::uint32_t before = 0; before <= 70; ++before) {
      Sample sample(random, find_algorithm("aes-256-ctr"), Direction::encrypt, 1600 + random() % 40);
      std::fill(sample.iv.end() - static_cast<std::ptrdiff_t>(ones), sample.iv.end(), std::uint8_t{0xff});
      sample.iv.back() = static_cast<std::uint8_t>(0xff - before);
      expect_right(GetParam(), sample.message, sample.message.in_len, 0, expected(sample.message).text.data());
    }
  }
}

// Tiles of a long message: pieces that begin in the middle.
TEST_P(CpuAesLanes, GoOnInTheMiddle) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(33);
  for (const Kind& kind : kinds) {
    const Algorithm& algorithm = find_algorithm(std::string("aes-128-") + kind.mode);
    Sample sample(random, algorithm, kind.direction, valid_len(algorithm, 3000));
    const Outcome want = expected(sample.message);
    const std::size_t unit = algorithm.unit_len();
    for (const std::size_t first : {std::size_t{1}, std::size_t{16}, std::size_t{77}}) {
      const std::size_t skipped = first * unit;
      Bytes chain(16);
      Bytes history = sample.iv;
      history.insert(history.end(), sample.in.begin(), sample.in.begin() + static_cast<std::ptrdiff_t>(skipped));
      if (history.size() >= 16) std::copy(history.end() - 16, history.end(), chain.begin());
      const Piece piece{sample.in.data() + skipped,
                        sample.out.data() + skipped,
                        sample.in.size() - skipped,
                        first,
                        chain.data(),
                        true};
      GetParam().run(sample.message, piece);
      EXPECT_TRUE(std::equal(want.text.begin() + static_cast<std::ptrdiff_t>(skipped), want.text.end(), piece.out))
          << GetParam().name << ' ' << algorithm.name << " from unit " << first;
    }
  }
}

// Such a mode ran as ECB once.
TEST_P(CpuAesLanes, RefuseAModeThatTheyHaveNoCodeFor) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(35);
  const Sample sample(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 64);
  EXPECT_THROW(GetParam().run(sample.message, whole_piece(sample.message)), Error);
}

INSTANTIATE_TEST_SUITE_P(Each, CpuAesLanes, testing::ValuesIn(forms()),
                         [](const auto& form) { return form.param.name; });

// The instruction set decides, and for long texts of XTS and ChaCha20 the length.
TEST(CpuRule, TakeOwnCodeByInstructionSetAndLength) {
  const auto own = [](const char* name, Direction direction, std::size_t len) {
    return code_rule(find_algorithm(name), direction, len).own;
  };
  const auto list = cpu::aes_lanes_list();
  const bool alone = !Libcrypto::is_here();
  for (const Kind& kind : kinds) {
    const std::string name = std::string("aes-128-") + kind.mode;
    EXPECT_EQ(own(name.c_str(), kind.direction, 64), alone || !list.empty()) << name;
    const bool long_too = list.size() > 1 || (list.size() == 1 && name != "aes-128-xts");
    EXPECT_EQ(own(name.c_str(), kind.direction, 1 << 20), alone || long_too) << name;
  }
  EXPECT_EQ(own("aes-128-cfb8", Direction::encrypt, 64), alone);
  EXPECT_TRUE(own("chacha20-poly1305", Direction::encrypt, 64));
  EXPECT_EQ(own("chacha20", Direction::encrypt, 1 << 20), alone || cpu::chacha_lanes_list().size() > 1);
  EXPECT_TRUE(own("des-ede3-cbc", Direction::encrypt, 64));
}

TEST(CpuRule, SaysWhatItTakes) {
  for (const Algorithm& algorithm : algorithms()) {
    const Decision decision = explain_cpu(algorithm, Direction::encrypt, 1 << 20);
    EXPECT_EQ(decision.candidates.at(0).is_chosen, code_rule(algorithm, Direction::encrypt, 1 << 20).own);
    EXPECT_NE(decision.candidates.at(0).is_chosen, decision.candidates.at(1).is_chosen);
    EXPECT_FALSE(decision.candidates.at(0).reason.empty()) << algorithm.name;
  }
}

// Long texts that are not in place go past the cache, and become what they become in place.
TEST(CpuAesModes, StoreLongTextsPastTheCache) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(34);
  const std::size_t len = least_past_cache + 64;
  for (const char* name : {"aes-128-ctr", "aes-256-gcm", "aes-128-cbc", "aes-192-cfb"}) {
    const Algorithm& algorithm = find_algorithm(name);
    const bool chains = algorithm.mode.id == Mode::cbc || algorithm.mode.id == Mode::cfb;
    Sample sample(random, algorithm, chains ? Direction::decrypt : Direction::encrypt, len);
    Bytes out(len + 64), in_place(sample.in), tag(16);
    Message m = sample.message, same = sample.message;
    m.out = out.data() + (16 - reinterpret_cast<std::uintptr_t>(out.data()) % 16) % 16 + 16;
    same.in = same.out = in_place.data();
    same.tag = tag.data();
    EXPECT_TRUE(is_past_cache(m));
    EXPECT_FALSE(is_past_cache(same));
    EXPECT_EQ(run_with_threads({&m, 1}, 2)[0], Status::ok);
    EXPECT_EQ(run_with_threads({&same, 1}, 2)[0], Status::ok);
    EXPECT_TRUE(std::equal(in_place.begin(), in_place.begin() + static_cast<std::ptrdiff_t>(len), m.out)) << name;
    EXPECT_TRUE(std::equal(m.tag, m.tag + m.tag_len, same.tag)) << name;
    m.out += 1;
    EXPECT_FALSE(is_past_cache(m));
    m.out -= 1;
    m.in_len = m.out_len = least_past_cache - 16;
    EXPECT_FALSE(is_past_cache(m));
  }
}

}  // namespace
}  // namespace warpcipher
