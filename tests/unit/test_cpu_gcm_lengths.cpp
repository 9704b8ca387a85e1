// SPDX-License-Identifier: Apache-2.0
// The CPU engine's own AES-GCM at every length to 4096 bytes, by each code, at places of any alignment, in place and
// not, with counters that wrap, against what the reference makes of one text. Other modes at every length:
// test_cpu_aes_lanes.cpp, test_cpu_lengths.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "cpu_aead_support.hpp"
#include "engine/cpu/lanes.hpp"

namespace warpcipher {
namespace {

using namespace test;

constexpr std::size_t most_len = 4096;
constexpr std::size_t places = 64;  // a text begins at one of them: past a line of the cache they come again

// GCM's result for the first bytes of a text and of an AAD, for any number of them: the key stream by the reference
// engine, the hash block by block, from any J0.
class GcmByLength {
 public:
  GcmByLength(std::mt19937& random, std::size_t key_len, Bytes first, std::size_t aad_len, std::size_t len)
      : key(random_bytes(random, key_len)), counter0(std::move(first)), aad(random_bytes(random, aad_len)) {
    text = random_bytes(random, len);
    Bytes blocks(16), counter = counter0;  // the zeros that become H, then J0 and the counters of the text
    for (std::size_t i = 0; i <= (len + 15) / 16; ++i) {
      blocks.insert(blocks.end(), counter.begin(), counter.end());
      store_be32(&counter[12], load_be32(&counter[12]) + 1);
    }
    const Key object(find_algorithm("aes-" + std::to_string(8 * key_len) + "-ecb"), key);
    Message ecb;
    ecb.key = &object;
    ecb.in = blocks.data();
    ecb.in_len = blocks.size();
    const Bytes stream = expected(ecb).text;
    h_ = gf128::load(stream.data());
    mask_ = gf128::load(stream.data() + 16);
    sealed = text;
    for (std::size_t i = 0; i < len; ++i) sealed[i] ^= stream[32 + i];
    aad_hashes_ = hashes({}, aad);
    text_hashes_ = hashes(after(aad_hashes_, aad, aad_len), sealed);
  }

  // The tag of the first bytes of the text, with all of the AAD.
  Bytes tag_of_text(std::size_t len) const { return tag(after(text_hashes_, sealed, len), aad.size(), len); }

  // The tag of the first bytes of the AAD, without a text.
  Bytes tag_of_aad(std::size_t len) const { return tag(after(aad_hashes_, aad, len), len, 0); }

  Bytes key, counter0, aad, text, sealed;

 private:
  using Hashes = std::vector<gf128::Element>;

  gf128::Element absorb(gf128::Element hash, gf128::Element block) const {
    return gf128::gcm_multiply(gf128::add(hash, block), h_);
  }

  // Of no block, of one, of two ...
  Hashes hashes(gf128::Element hash, const Bytes& data) const {
    Hashes all{hash};
    for (std::size_t i = 0; i + 16 <= data.size(); i += 16) {
      all.push_back(absorb(all.back(), gf128::load(data.data() + i)));
    }
    return all;
  }

  gf128::Element after(const Hashes& hashes, const Bytes& data, std::size_t len) const {
    std::uint8_t last[16] = {};
    if (len % 16 == 0) return hashes[len / 16];
    std::memcpy(last, data.data() + len / 16 * 16, len % 16);
    return absorb(hashes[len / 16], gf128::load(last));
  }

  Bytes tag(gf128::Element hash, std::size_t aad_len, std::size_t len) const {
    Bytes made(16);
    gf128::store(made.data(), gf128::add(absorb(hash, {8 * aad_len, 8 * len}), mask_));
    return made;
  }

  gf128::Element h_, mask_;
  Hashes aad_hashes_, text_hashes_;
};

// A J0 whose count is `last`.
Bytes counter_block(std::mt19937& random, std::uint32_t last) {
  Bytes counter0 = random_bytes(random, 16);
  store_be32(&counter0[12], last);
  return counter0;
}

class CpuGcmLengths : public testing::TestWithParam<const cpu::GcmLanes*> {
 protected:
  // Encrypts and decrypts the first bytes, apart and in place, at any places.
  void expect_right(const GcmByLength& right, std::size_t len) {
    const cpu::GcmLanes* const code = GetParam();
    for (const bool past_cache : {false, true}) {
      cpu::GcmLaneKey key;
      code->make_key(right.key.data(), right.key.size(), key);
      const Bytes want_tag = right.tag_of_text(len);
      for (const bool encrypts : {true, false}) {
        const Bytes& given = encrypts ? right.text : right.sealed;
        const Bytes& want = encrypts ? right.sealed : right.text;
        for (const bool in_place : {false, true}) {
          // Past the cache a text is at a multiple of a block.
          const std::size_t at = past_cache ? 16 * (random_() % (places / 16)) : random_() % places;
          std::uint8_t* const out = out_ + at;
          const std::uint8_t* in = in_place ? out : in_ + random_() % places;
          std::memset(out_, Sample::guard_byte, sizeof out_);
          std::memcpy(const_cast<std::uint8_t*>(in), given.data(), len);
          const bool is_public = random_() % 2 != 0;  // the result is the same
          std::uint8_t tag[16];
          (encrypts ? code->encrypt : code->decrypt)(
              key, {right.counter0.data(), right.aad.data(), right.aad.size(), in, out, len, is_public, past_cache},
              tag);
          ASSERT_TRUE(std::memcmp(out, want.data(), len) == 0 && std::memcmp(tag, want_tag.data(), 16) == 0)
              << code->name << (past_cache ? ", past the cache" : "") << ", key of " << right.key.size()
              << (encrypts ? ", encryption of " : ", decryption of ") << len << " bytes to place " << at
              << ", in place " << in_place << ", counter public " << is_public;
          ASSERT_TRUE(is_guard(out_, out) && is_guard(out + len, out + len + places)) << len;
        }
      }
    }
  }

  std::mt19937 random_{38};

 private:
  static bool is_guard(const std::uint8_t* first, const std::uint8_t* last) {
    return std::all_of(first, last, [](std::uint8_t byte) { return byte == Sample::guard_byte; });
  }

  alignas(64) std::uint8_t in_[most_len + places], out_[most_len + 2 * places];
};

TEST_P(CpuGcmLengths, EqualTheReference) {
  for (const std::size_t key_len : {16u, 24u, 32u}) {
    const Bytes counter0 = counter_block(random_, 1);  // as of an IV of 12 bytes
    const GcmByLength right(random_, key_len, counter0, key_len - 3, most_len);
    for (std::size_t len = 0; len <= most_len; ++len) expect_right(right, len);
  }
}

TEST_P(CpuGcmLengths, HashAads) {
  const GcmByLength right(random_, 16, random_bytes(random_, 16), most_len, 0);
  cpu::GcmLaneKey key;
  GetParam()->make_key(right.key.data(), right.key.size(), key);
  for (std::size_t len = 0; len <= most_len; ++len) {
    const std::size_t at = random_() % places;
    Bytes aad(at + len);
    std::copy_n(right.aad.begin(), len, aad.begin() + static_cast<std::ptrdiff_t>(at));
    std::uint8_t tag[16];
    GetParam()->encrypt(key, {right.counter0.data(), aad.data() + at, len, nullptr, nullptr, 0, false}, tag);
    ASSERT_TRUE(std::memcmp(tag, right.tag_of_aad(len).data(), 16) == 0) << GetParam()->name << ", AAD of " << len;
  }
}

TEST_P(CpuGcmLengths, WrapCountersInEveryBlock) {
  for (std::uint32_t before = 0; before <= 70; ++before) {
    const GcmByLength right(random_, 16, counter_block(random_, 0 - before), 5, 1600 + random_() % 40);
    expect_right(right, right.text.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CpuGcmLengths, testing::ValuesIn(all_gcm_codes()),
                         [](const auto& code) { return std::string(code.param->name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuGcmLengths);

// The maker of what is expected above, against the reference engine's GCM.
TEST(CpuGcmByLength, IsGcm) {
  std::mt19937 random(39);
  const Bytes counter0 = counter_block(random, 1);
  const GcmByLength made(random, 32, counter0, 37, most_len);
  const Key key(find_algorithm("aes-256-gcm"), made.key);
  for (const std::size_t len : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{256}, most_len}) {
    Bytes tag(16);
    Message m;
    m.key = &key;
    m.in = made.text.data();
    m.in_len = m.out_len = len;
    m.iv = counter0.data();
    m.iv_len = 12;
    m.aad = made.aad.data();
    m.aad_len = made.aad.size();
    m.tag = tag.data();
    m.tag_len = 16;
    const Outcome want = expected(m);
    EXPECT_EQ(made.tag_of_text(len), want.tag) << len;
    EXPECT_TRUE(
        std::equal(want.text.begin(), want.text.begin() + static_cast<std::ptrdiff_t>(len), made.sealed.begin()));
  }
}

}  // namespace
}  // namespace warpcipher
