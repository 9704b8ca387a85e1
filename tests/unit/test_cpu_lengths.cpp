// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV, the AEADs of ChaCha20, and AES where a block waits for the one before it, by each code of the CPU engine
// at every length to 4096 bytes, at places of any alignment, in place and not, against what the reference makes of one
// text.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cipher/gf128.hpp"
#include "core/bytes.hpp"
#include "cpu_aead_support.hpp"
#include "engine/cpu/chacha.hpp"
#include "engine/cpu/modes.hpp"

namespace warpcipher {
namespace cpu {
extern const ChaChaLanes chacha_lanes_defined;  // cpu_chacha_sixteen_blocks_baseline.cpp
}
namespace {

using namespace test;

constexpr std::size_t most_len = 4096;
constexpr std::size_t places = 64;  // a text begins at one of them: past a line of the cache they come again

// The message `m`, its text and its output laid at any places of buffers, or in place: what it gave, and whether it
// wrote nothing else.
class AtAnyPlace {
 public:
  explicit AtAnyPlace(unsigned seed) : random_(seed) {}

  // `text` has m.in_len bytes at least.
  Message of(Message m, const Bytes& text) {
    std::fill(out_.begin(), out_.end(), Sample::guard_byte);
    std::uint8_t* const out = out_.data() + random_() % places;
    std::uint8_t* const in = random_() % 2 == 0 ? out : in_.data() + random_() % places;
    std::copy_n(text.begin(), m.in_len, in);
    m.in = in;
    m.out = out;
    begin_ = out;
    m.out_len = len_ = m.in_len;
    return m;
  }

  // Whether it is the beginning of `want`.
  bool gave(const Bytes& want) const {
    const auto is_guard = [](std::uint8_t byte) { return byte == Sample::guard_byte; };
    return std::equal(begin_, begin_ + len_, want.begin()) && std::all_of(out_.data(), begin_, is_guard) &&
           std::all_of(begin_ + len_, begin_ + len_ + places, is_guard);
  }

  Bytes given() const { return {begin_, begin_ + len_}; }

 private:
  std::mt19937 random_;
  Bytes in_ = Bytes(most_len + places), out_ = Bytes(most_len + 2 * places);
  const std::uint8_t* begin_ = nullptr;
  std::size_t len_ = 0;
};

struct SivForm {
  std::string name;
  const cpu::GcmLanes* code;  // nullptr: libcrypto

  Status run(const Message& m) const {
    return code != nullptr ? run_gcm_siv_by_own(*code, m) : run_gcm_siv_by_libcrypto(m);
  }
};

std::vector<SivForm> siv_forms() {
  std::vector<SivForm> forms;
  for (const cpu::GcmLanes* const code : all_gcm_codes()) forms.push_back({code->name, code});
  if (Libcrypto::is_here()) forms.push_back({"libcrypto", nullptr});
  return forms;
}

class CpuGcmSivLengths : public testing::TestWithParam<SivForm> {
 protected:
  // A ciphertext that is decrypted with a tag that is not its own. The reference's result begins with what it
  // makes of its beginnings.
  struct Unchecked {
    Unchecked(std::mt19937& random, const char* name, std::size_t len, const Bytes& counter)
        : sample(random, find_algorithm(name), Direction::decrypt, len) {
      sample.iv.insert(sample.iv.end(), counter.begin(), counter.end());
      sample.message.iv = sample.iv.data();
      sample.message.iv_len = sample.iv.size();
      sample.message.compute_tag = true;
      plain = expected(sample.message);
    }

    Sample sample;
    Outcome plain;
  };

  AtAnyPlace place_{41};
  std::mt19937 random_{42};
};

// RFC 8452, section 4, for a text of which the first bytes are hashed already.
class SivTags {
 public:
  SivTags(const Sample& sample, const Bytes& text) : nonce_(sample.iv.begin(), sample.iv.begin() + 12), text_(text) {
    const std::size_t key_len = sample.key->size();
    const Bytes derived = derive({sample.key->bytes(), sample.key->bytes() + key_len}, 2 + key_len / 8);
    key_.assign(derived.begin() + 16, derived.end());
    h_ = gf128::load_polyval_key(derived.data());
    aad_len_ = sample.aad.size();
    Bytes aad = sample.aad;
    aad.resize((aad_len_ + 15) / 16 * 16);
    hashes_.push_back(gf128::polyval({}, h_, aad.data(), aad.size() / 16));
    for (std::size_t i = 0; i + 16 <= text.size(); i += 16) {
      hashes_.push_back(gf128::polyval(hashes_.back(), h_, &text[i], 1));
    }
  }

  Bytes of(std::size_t len) const {
    Bytes last(len % 16 == 0 ? 16 : 32);
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(len / 16 * 16), len % 16, last.begin());
    store_le64(&last[last.size() - 16], 8 * aad_len_);
    store_le64(&last[last.size() - 8], 8 * len);
    const gf128::Element hash = gf128::polyval(hashes_[len / 16], h_, last.data(), last.size() / 16);
    Bytes block(16), tag(16);
    gf128::store(block.data(), hash);
    std::reverse(block.begin(), block.end());
    for (std::size_t i = 0; i < nonce_.size(); ++i) block[i] ^= nonce_[i];
    block[15] &= 0x7f;
    return blocks(key_, block);
  }

 private:
  static Bytes blocks(const Bytes& key, const Bytes& in) {
    const Key object(find_algorithm("aes-" + std::to_string(8 * key.size()) + "-ecb"), key);
    Message m;
    m.key = &object;
    m.in = in.data();
    m.in_len = in.size();
    return expected(m).text;
  }

  Bytes derive(const Bytes& key, std::size_t count) const {
    Bytes derived;
    for (std::uint32_t i = 0; i < count; ++i) {
      Bytes block(4);
      store_le32(block.data(), i);
      block.insert(block.end(), nonce_.begin(), nonce_.end());
      const Bytes made = blocks(key, block);
      derived.insert(derived.end(), made.begin(), made.begin() + 8);
    }
    return derived;
  }

  const Bytes nonce_, text_;
  Bytes key_;
  gf128::Element h_{};
  std::size_t aad_len_;
  std::vector<gf128::Element> hashes_;
};

TEST_P(CpuGcmSivLengths, EqualTheReference) {
  for (const char* name : {"aes-128-gcm-siv", "aes-256-gcm-siv"}) {
    const Unchecked given(random_, name, most_len, random_bytes(random_, 16));
    const SivTags tags(given.sample, given.plain.text);
    ASSERT_EQ(tags.of(most_len), given.plain.tag);
    Bytes tag(16), iv = given.sample.iv;
    for (std::size_t len = 0; len <= most_len; ++len) {
      const Bytes want = tags.of(len);
      Message m = given.sample.message;
      m.in_len = len;
      m.tag = tag.data();
      ASSERT_EQ(GetParam().run(place_.of(m, given.sample.in)), Status::ok);
      ASSERT_TRUE(place_.gave(given.plain.text) && tag == want) << name << ", decryption of " << len;

      m.direction = Direction::encrypt;
      m.compute_tag = false;
      m.iv_len = 12;
      ASSERT_EQ(GetParam().run(place_.of(m, given.plain.text)), Status::ok);
      ASSERT_EQ(tag, want) << name << ", encryption of " << len;
      Bytes sealed = place_.given();
      m.direction = Direction::decrypt;
      ASSERT_EQ(GetParam().run(place_.of(m, sealed)), Status::ok);
      ASSERT_TRUE(place_.gave(given.plain.text)) << name << ", encryption of " << len;
    }
  }
}

// The count is the first four bytes of the tag, which a text's own tag cannot be chosen to have.
TEST_P(CpuGcmSivLengths, WrapCountersInEveryBlock) {
  for (std::uint32_t before = 0; before <= 70; ++before) {
    Bytes counter = random_bytes(random_, 16), tag(16);
    store_le32(counter.data(), 0 - before);
    const Unchecked given(random_, "aes-128-gcm-siv", 1200 + random_() % 40, counter);
    Message m = given.sample.message;
    m.tag = tag.data();
    ASSERT_EQ(GetParam().run(place_.of(m, given.sample.in)), Status::ok);
    ASSERT_TRUE(place_.gave(given.plain.text) && tag == given.plain.tag) << before << " blocks before the wrap";
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CpuGcmSivLengths, testing::ValuesIn(siv_forms()),
                         [](const auto& form) { return form.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuGcmSivLengths);

TEST(CpuChaChaLengths, EqualTheReference) {
  std::mt19937 random(43);
  AtAnyPlace place(44);
  std::vector<RunAead> codes{run_chacha_message};
  if (Libcrypto::is_here()) codes.push_back(run_chacha_by_libcrypto);
  std::vector<const cpu::ChaChaLanes*> own(cpu::chacha_lanes_list().begin(), cpu::chacha_lanes_list().end());
  own.push_back(&cpu::chacha_lanes_defined);
  for (const cpu::ChaChaLanes* code : own) {
    codes.push_back([code](const Message& m) { return run_chacha_by_own(*code, m); });
  }
  for (const char* name : {"chacha20-poly1305", "xchacha20-poly1305"}) {
    Sample sample(random, find_algorithm(name), Direction::encrypt, most_len);
    const Bytes sealed = expected(sample.message).text;
    for (std::size_t len = 0; len <= most_len; ++len) {
      Message m = sample.message;
      m.in_len = len;
      m.out_len = len;
      const Bytes want = expected(m).tag;
      for (std::size_t i = 0; i < codes.size(); ++i) {
        ASSERT_EQ(codes[i](place.of(m, sample.in)), Status::ok);
        ASSERT_TRUE(place.gave(sealed) && sample.tag == want) << name << ", code " << i << ", " << len << " bytes";
        Message back = m;
        back.direction = Direction::decrypt;
        ASSERT_EQ(codes[i](place.of(back, sealed)), Status::ok);
        ASSERT_TRUE(place.gave(sample.in)) << name << ", code " << i << ", decryption of " << len;
      }
    }
  }
}

// Eight side by side, of lengths that follow each other, and each alone by libcrypto.
TEST(CpuSerialLengths, EqualTheReference) {
  SKIP_WITHOUT_CPU_AES();
  std::mt19937 random(45);
  constexpr std::size_t lanes = 8;
  for (const char* mode : {"cbc", "cfb", "ofb"}) {
    for (const int bits : {128, 192, 256}) {
      const Algorithm& algorithm = find_algorithm("aes-" + std::to_string(bits) + "-" + mode);
      const Sample sample(random, algorithm, Direction::encrypt, most_len);
      const Bytes want = expected(sample.message).text;
      const std::size_t step = algorithm.mode.whole_blocks ? 16 : 1;
      std::vector<AtAnyPlace> each;
      for (unsigned i = 0; i < lanes; ++i) each.emplace_back(46 + i);
      for (std::size_t first = 0; first <= most_len; first += lanes * step) {
        std::vector<Message> messages;
        for (std::size_t i = 0, len = first; i < lanes && len <= most_len; ++i, len += step) {
          Message m = sample.message;
          m.in_len = len;
          messages.push_back(each[i].of(m, sample.in));
        }
        std::vector<const Message*> pointers;
        for (const Message& m : messages) pointers.push_back(&m);
        if (aes_serial_lanes(algorithm, Direction::encrypt) > 1) {
          run_aes_serial(pointers);
          for (std::size_t i = 0; i < messages.size(); ++i) {
            ASSERT_TRUE(each[i].gave(want)) << algorithm.name << ' ' << messages[i].in_len;
          }
        }
        if (!Libcrypto::is_here()) continue;
        for (std::size_t i = 0; i < messages.size(); ++i) {
          const Message m = each[i].of(messages[i], sample.in);
          run_libcrypto_piece(AesKey::of(*m.key), m, whole_piece(m));
          ASSERT_TRUE(each[i].gave(want)) << algorithm.name << " by libcrypto " << m.in_len;
        }
      }
    }
  }
}

}  // namespace
}  // namespace warpcipher
