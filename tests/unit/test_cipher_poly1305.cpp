// SPDX-License-Identifier: Apache-2.0
// Poly1305 against the text of RFC 8439 in numbers of bytes, and its values: section 2.5.2 and appendix A.3, whose last
// six are numbers near p, 2^128 and 2^130.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <vector>

#include "cipher/poly1305.hpp"

namespace warpcipher::poly1305 {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Tag = std::array<std::uint8_t, tag_len>;

Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  }
  return bytes;
}

Tag tag_of(const Bytes& key, const Bytes& text) {
  Hash hash = Hash::start(key.data());
  hash.add_text(text.data(), text.size());
  Tag tag;
  hash.finish(tag.data());
  return tag;
}

using Words = std::uint32_t[4];

void load_words(const Bytes& bytes, std::size_t at, Words& words) {
  for (int i = 0; i < 4; ++i) words[i] = load_le32(bytes.data() + at + 4 * static_cast<std::size_t>(i));
}

// The same by words; as_limbs: of which steps, a bit each in turn, the product is one of limbs.
Tag tag_by_words(const Bytes& key, const Bytes& text, unsigned as_limbs) {
  Words r, s, tag;
  load_words(key, 0, r);
  load_words(key, 16, s);
  for (int i = 0; i < 4; ++i) r[i] &= i == 0 ? 0x0fffffffu : 0x0ffffffcu;
  const Multiplier multiplier(r);
  const Element limbs = load_r(key.data());
  Number x{};
  for (std::size_t at = 0, step = 0; at < text.size(); at += 16, ++step) {
    Bytes block(text.begin() + static_cast<std::ptrdiff_t>(at),
                text.begin() + static_cast<std::ptrdiff_t>(std::min(at + 16, text.size())));
    const std::uint32_t high = block.size() == 16 ? 1 : 0;
    if (high == 0) block.push_back(1);
    block.resize(16);
    Words words;
    load_words(block, 0, words);
    x = add(x, words, high);
    x = (as_limbs >> step % 8 & 1) != 0 ? multiply(x, limbs) : multiply(x, multiplier);
    EXPECT_LE(x.words[4], 4u);
  }
  make_tag(x, s, tag);
  Tag bytes;
  for (std::size_t i = 0; i < 4; ++i) store_le32(bytes.data() + 4 * i, tag[i]);
  return bytes;
}

// The obvious form: numbers of 17 digits to the base 256, times each other digit by digit, and p taken off one at a
// time.
class Plain {
 public:
  explicit Plain(const Bytes& key) {
    constexpr std::uint8_t clamp[16] = {255, 255, 255, 15, 252, 255, 255, 15, 252, 255, 255, 15, 252, 255, 255, 15};
    for (std::size_t i = 0; i < 16; ++i) r_[i] = key[i] & clamp[i];
    for (std::size_t i = 0; i < 16; ++i) s_[i] = key[16 + i];
  }

  Tag tag(const Bytes& text) {
    for (std::size_t at = 0; at < text.size(); at += 16) {
      const std::size_t len = std::min<std::size_t>(16, text.size() - at);
      Digits block{};
      for (std::size_t i = 0; i < len; ++i) block[i] = text[at + i];
      block[len] = 1;
      for (std::size_t i = 0; i < 17; ++i) h_[i] += block[i];
      multiply();
    }
    while (reaches_p()) {
      std::uint32_t borrow = 0;
      for (std::size_t i = 0; i < 17; ++i) {
        const std::uint32_t less = p(i) + borrow;
        borrow = h_[i] < less ? 1 : 0;
        h_[i] = h_[i] + 256 * borrow - less;
      }
    }
    Tag made;
    std::uint32_t carry = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      carry += h_[i] + s_[i];
      made[i] = static_cast<std::uint8_t>(carry);
      carry >>= 8;
    }
    return made;
  }

 private:
  using Digits = std::array<std::uint32_t, 17>;

  static std::uint32_t p(std::size_t i) { return i == 0 ? 0xfb : i == 16 ? 3 : 0xff; }

  bool reaches_p() const {
    for (std::size_t i = 17; i-- > 0;) {
      if (h_[i] != p(i)) return h_[i] > p(i);
    }
    return true;
  }

  // h r: digit 17 + i stands for 2^(136 + 8 i) = 320 2^(8 i).
  void multiply() {
    Digits product{};
    for (std::size_t i = 0; i < 17; ++i) {
      for (std::size_t j = 0; j < 17; ++j) {
        product[(i + j) % 17] += h_[i] * r_[j] * (i + j < 17 ? 1 : 320);
      }
    }
    for (int round = 0; round < 2; ++round) {
      std::uint32_t carry = 0;
      for (std::size_t i = 0; i < 16; ++i) {
        carry += product[i];
        product[i] = carry & 0xff;
        carry >>= 8;
      }
      carry += product[16];
      product[16] = carry & 3;
      product[0] += 5 * (carry >> 2);  // 2^130 = 5
    }
    h_ = product;
    std::uint32_t carry = 0;
    for (std::size_t i = 0; i < 17; ++i) {
      carry += h_[i];
      h_[i] = carry & 0xff;
      carry >>= 8;
    }
  }

  Digits r_{}, h_{};
  std::array<std::uint32_t, 16> s_{};
};

Bytes repeated(std::uint8_t byte, std::size_t count) { return Bytes(count, byte); }

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// A block that begins with the bytes, then zeros.
Bytes block(std::initializer_list<std::uint8_t> first) {
  Bytes bytes(16);
  std::copy(first.begin(), first.end(), bytes.begin());
  return bytes;
}

TEST(Poly1305, HasTheTagOfSection252) {
  constexpr std::string_view text = "Cryptographic Forum Research Group";
  EXPECT_EQ(tag_of(from_hex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"),
                   Bytes(text.begin(), text.end())),
            (Tag{0xa8, 0x06, 0x1d, 0xc1, 0x30, 0x51, 0x36, 0xc6, 0xc2, 0x2b, 0x8b, 0xaf, 0x0c, 0x01, 0x27, 0xa9}));
}

TEST(Poly1305, HasTheTagsOfAppendixA3) {
  struct Case {
    Bytes r, s, text, tag;
  };
  const Bytes none = block({}), ones = repeated(255, 16);
  const Bytes r10 = from_hex("01000000000000000400000000000000");
  const Bytes text11 =
      from_hex("e33594d7505e43b900000000000000003394d7505e4379cd010000000000000000000000000000000000000000000000");
  const Case cases[] = {
      {none, none, Bytes(64), none},               // 1
      {block({2}), none, ones, block({3})},        // 5: 2^130 - 2 wraps
      {block({2}), ones, block({2}), block({3})},  // 6: s carries out
      {block({1}), none, joined({ones, joined({{0xf0}, repeated(255, 15)}), block({0x11})}), block({5})},  // 7
      {block({1}), none, joined({ones, joined({{0xfb}, repeated(0xfe, 15)}), repeated(1, 16)}), none},     // 8: h = p
      {block({2}), none, joined({{0xfd}, repeated(255, 15)}), joined({{0xfa}, repeated(255, 15)})},        // 9
      {r10, none, joined({text11, block({1})}), from_hex("14000000000000005500000000000000")},             // 10
      {r10, none, text11, from_hex("13000000000000000000000000000000")},                                   // 11
  };
  int number = 0;
  for (const Case& c : cases) {
    ++number;
    const Tag tag = tag_of(joined({c.r, c.s}), c.text);
    EXPECT_EQ(Bytes(tag.begin(), tag.end()), c.tag) << number;
    EXPECT_EQ(Plain(joined({c.r, c.s})).tag(c.text), tag) << number;
    for (const unsigned as_limbs : {0u, 0x55u, 0xffu}) {
      EXPECT_EQ(tag_by_words(joined({c.r, c.s}), c.text, as_limbs), tag) << number;
    }
  }
}

// Keys whose r has all the bits that it may have, or few, and texts of bytes near 0 and 255: sums near p.
TEST(Poly1305, EqualsTheObviousForm) {
  std::mt19937 random(8439);
  const auto any_byte = [&](unsigned kind) -> std::uint8_t {
    const auto value = static_cast<std::uint32_t>(random());
    if (kind == 0) return static_cast<std::uint8_t>(value);
    const std::uint8_t few[] = {0, 255, 255, 254, 1, 0xfb, 0xfc, 255};
    return few[value % 8];
  };
  for (int i = 0; i < 20000; ++i) {
    const auto key_kind = static_cast<unsigned>(random() % 3), text_kind = static_cast<unsigned>(random() % 2);
    Bytes key(key_len), text(random() % (i % 100 == 0 ? 700 : 70));
    for (std::uint8_t& byte : key) byte = key_kind == 2 ? 255 : any_byte(key_kind);
    for (std::uint8_t& byte : text) byte = any_byte(text_kind);
    const Tag tag = Plain(key).tag(text);
    ASSERT_EQ(tag_of(key, text), tag) << "case " << i << ", " << text.size() << " bytes";
    const auto as_limbs = i % 2 == 0 ? 0 : static_cast<unsigned>(random());
    ASSERT_EQ(tag_by_words(key, text, as_limbs), tag) << "case " << i << ", " << text.size() << " bytes";
  }
}

// Sums of products that are reduced once, as parallel code makes them.
TEST(Poly1305, ReducesASumOfProductsAtOnce) {
  std::mt19937 random(1305);
  const auto number = [&](bool largest) {
    Element e;
    for (std::uint32_t& limb : e.limbs)
      limb = largest ? (1u << 27) - 1 : static_cast<std::uint32_t>(random()) & limb_mask;
    return e;
  };
  const auto finished = [](const Element& h) {
    const std::uint8_t s[16] = {};
    Tag tag;
    store_tag(h, s, tag.data());
    return tag;
  };
  for (int i = 0; i < 1000; ++i) {
    const bool largest = i % 10 == 0;
    const Element a = number(largest), b = number(false), c = number(largest), d = number(false);
    Product sum = multiply_wide(a, b);
    const Product other = multiply_wide(c, d);
    for (int k = 0; k < 5; ++k) sum.limbs[k] += other.limbs[k];
    EXPECT_EQ(finished(reduce(sum)), finished(add(multiply(a, b), multiply(c, d))));
  }
}

}  // namespace
}  // namespace warpcipher::poly1305
