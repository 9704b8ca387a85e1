// SPDX-License-Identifier: Apache-2.0
// Poly1305 (RFC 8439, section 2.5), for host and device: a polynomial over the blocks of a text, evaluated at r modulo
// p = 2^130 - 5. Constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cipher/wide_product.hpp"
#include "core/bytes.hpp"
#include "core/host_device.hpp"

namespace warpcipher::poly1305 {

inline constexpr std::size_t block_len = 16;
inline constexpr std::size_t key_len = 32;  // r and s
inline constexpr std::size_t tag_len = 16;
inline constexpr std::size_t sum_len = 20;  // an Element as bytes: its limbs, little-endian

// A number modulo p in five limbs of 26 bits, the least significant first. Results of the functions here have limbs
// below 2^26, except for limb 1, below 2^26 + 2^12: so it need not be below p.
struct Element {
  std::uint32_t limbs[5];
};

inline constexpr std::uint32_t limb_mask = (1u << 26) - 1;

// The 128-bit little-endian number, and 2^128 if `high` is 1.
WARPCIPHER_HD constexpr Element load(const std::uint8_t* block, std::uint32_t high) {
  return {{load_le32(block) & limb_mask, load_le32(block + 3) >> 2 & limb_mask, load_le32(block + 6) >> 4 & limb_mask,
           load_le32(block + 9) >> 6 & limb_mask, load_le32(block + 12) >> 8 | high << 24}};
}

// A block of 1 to 16 bytes: a one follows the bytes.
WARPCIPHER_HD constexpr Element load_short(const std::uint8_t* block, std::size_t len) {
  std::uint8_t filled[17] = {};
  for (std::size_t i = 0; i < len; ++i) filled[i] = block[i];
  filled[len] = 1;
  return load(filled, filled[16]);
}

// r of a key: 22 of its bits are cleared.
WARPCIPHER_HD constexpr Element load_r(const std::uint8_t* key) {
  const Element r = load(key, 0);
  return {{r.limbs[0] & 0x3ffffff, r.limbs[1] & 0x3ffff03, r.limbs[2] & 0x3ffc0ff, r.limbs[3] & 0x3f03fff,
           r.limbs[4] & 0x00fffff}};
}

// Limbs may grow to 2^27 before a product.
WARPCIPHER_HD constexpr Element add(const Element& a, const Element& b) {
  Element sum{};
  for (int i = 0; i < 5; ++i) sum.limbs[i] = a.limbs[i] + b.limbs[i];
  return sum;
}

// The sum of five products of limbs for each limb of a product: below 2^63 for limbs below 2^28.
struct Product {
  std::uint64_t limbs[5];
};

// A product whose limbs are not carried: sums of a few of them may be reduced once. 2^130 = 5.
WARPCIPHER_HD constexpr Product multiply_wide(const Element& a, const Element& b) {
  Product product{};
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) {
      const std::uint32_t factor = i + j < 5 ? b.limbs[j] : 5 * b.limbs[j];
      product.limbs[(i + j) % 5] += wide_product(a.limbs[i], factor);
    }
  }
  return product;
}

WARPCIPHER_HD constexpr Element reduce(const Product& product) {
  Element result{};
  std::uint64_t carry = 0;
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t sum = product.limbs[i] + carry;
    result.limbs[i] = static_cast<std::uint32_t>(sum) & limb_mask;
    carry = sum >> 26;
  }
  const std::uint64_t folded = result.limbs[0] + 5 * carry;
  result.limbs[0] = static_cast<std::uint32_t>(folded) & limb_mask;
  result.limbs[1] += static_cast<std::uint32_t>(folded >> 26);
  return result;
}

WARPCIPHER_HD constexpr Element multiply(const Element& a, const Element& b) { return reduce(multiply_wide(a, b)); }

// The tag: (h mod p + s) mod 2^128. `s`: 16 bytes.
WARPCIPHER_HD constexpr void store_tag(const Element& h, const std::uint8_t* s, std::uint8_t* tag) {
  // Carried twice, h is below 2^130; then p is subtracted if h + 5 reaches 2^130.
  std::uint32_t limbs[5] = {};
  std::uint32_t carry = 0;
  for (int i = 0; i < 5; ++i) limbs[i] = h.limbs[i];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5; ++i) {
      limbs[i] += carry;
      carry = limbs[i] >> 26;
      limbs[i] &= limb_mask;
    }
    carry *= 5;
  }
  limbs[0] += carry;  // 0 by now, unless h was more than 2^131: limbs of add() give less
  std::uint32_t less[5] = {};
  carry = 5;
  for (int i = 0; i < 5; ++i) {
    less[i] = limbs[i] + carry;
    carry = less[i] >> 26;
    less[i] &= limb_mask;
  }
  const std::uint32_t take = 0 - carry;
  std::uint64_t sum = 0;
  std::uint32_t words[4] = {};
  for (int i = 0; i < 5; ++i) limbs[i] = (limbs[i] & ~take) | (less[i] & take);
  words[0] = limbs[0] | limbs[1] << 26;
  words[1] = limbs[1] >> 6 | limbs[2] << 20;
  words[2] = limbs[2] >> 12 | limbs[3] << 14;
  words[3] = limbs[3] >> 18 | limbs[4] << 8;
  for (int i = 0; i < 4; ++i) {
    sum += std::uint64_t{words[i]} + load_le32(s + 4 * i);
    store_le32(tag + 4 * i, static_cast<std::uint32_t>(sum));
    sum >>= 32;
  }
}

WARPCIPHER_HD constexpr void store_sum(const Element& h, std::uint8_t* sum) {
  for (int i = 0; i < 5; ++i) store_le32(sum + 4 * i, h.limbs[i]);
}

WARPCIPHER_HD constexpr Element load_sum(const std::uint8_t* sum) {
  Element h{};
  for (int i = 0; i < 5; ++i) h.limbs[i] = load_le32(sum + 4 * i);
  return h;
}

// Poly1305 of one text, block by block. Plain data; the holder wipes it.
struct Hash {
  Element h, r;
  std::uint8_t s[16];

  // key: r and s.
  static WARPCIPHER_HD constexpr Hash start(const std::uint8_t* key) {
    Hash hash{{}, load_r(key), {}};
    for (int i = 0; i < 16; ++i) hash.s[i] = key[16 + i];
    return hash;
  }

  // A block of 16 bytes or, at the end of the text, fewer.
  WARPCIPHER_HD constexpr void add_block(const std::uint8_t* block, std::size_t len) {
    h = multiply(add(h, len == block_len ? load(block, 1) : load_short(block, len)), r);
  }

  // Any text.
  WARPCIPHER_HD constexpr void add_text(const std::uint8_t* text, std::size_t len) {
    for (; len > block_len; text += block_len, len -= block_len) add_block(text, block_len);
    if (len != 0) add_block(text, len);
  }

  // The text, filled up with zeros to whole blocks (section 2.8).
  WARPCIPHER_HD constexpr void add_padded(const std::uint8_t* text, std::size_t len) {
    for (; len >= block_len; text += block_len, len -= block_len) add_block(text, block_len);
    if (len == 0) return;
    std::uint8_t filled[block_len] = {};
    for (std::size_t i = 0; i < len; ++i) filled[i] = text[i];
    add_block(filled, block_len);
  }

  WARPCIPHER_HD constexpr void finish(std::uint8_t* tag) const { store_tag(h, s, tag); }
};

// Numbers modulo 2^130 - 5 as words of 32 bits, for host and device. Constant time.
//
// The upper four bits of each word of r are clear, and the lower two of all but the first. So the products of a number
// and r, which fold 2^130 into 5, are sums of four that 64 bits hold, and text needs no limbs: a step of Poly1305 takes
// 43 instructions of a GPU, 19 of them products, where limbs of 26 bits (poly1305.hpp) take 25 products and as much
// around them again. Powers of r have no such bits, and are multiplied as limbs.

// Results of the functions here have a last word of at most 4.
struct Number {
  std::uint32_t words[5];
};

// r as a key has it, 22 of its bits cleared; and the words by which 2^128 folds: 5/4 of each but the first.
struct Multiplier {
  std::uint32_t r[4];
  std::uint32_t s[4];

  WARPCIPHER_INLINE explicit constexpr Multiplier(const std::uint32_t (&clamped)[4]) : r{}, s{} {
    for (int i = 0; i < 4; ++i) {
      r[i] = clamped[i];
      s[i] = r[i] + (r[i] >> 2);
    }
  }
};

// x + b + high 2^128
WARPCIPHER_INLINE constexpr Number add(const Number& x, const std::uint32_t (&b)[4], std::uint32_t high) {
  Number result{};
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    asm("add.cc.u32 %0, %5, %10;\n\t"
        "addc.cc.u32 %1, %6, %11;\n\t"
        "addc.cc.u32 %2, %7, %12;\n\t"
        "addc.cc.u32 %3, %8, %13;\n\t"
        "addc.u32 %4, %9, %14;"
        : "=r"(result.words[0]), "=r"(result.words[1]), "=r"(result.words[2]), "=r"(result.words[3]),
          "=r"(result.words[4])
        : "r"(x.words[0]), "r"(x.words[1]), "r"(x.words[2]), "r"(x.words[3]), "r"(x.words[4]), "r"(b[0]), "r"(b[1]),
          "r"(b[2]), "r"(b[3]), "r"(high));
    return result;
  }
#endif
  std::uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += std::uint64_t{x.words[i]} + b[i];
    result.words[i] = static_cast<std::uint32_t>(sum);
    sum >>= 32;
  }
  result.words[4] = x.words[4] + static_cast<std::uint32_t>(sum) + high;
  return result;
}

// The same number: the part above 2^130 is added five times. The last word is less than 3 2^30.
WARPCIPHER_INLINE constexpr Number fold(const Number& x) {
  const std::uint32_t above = x.words[4] & ~3u;
  const std::uint32_t five_times[4] = {above + (above >> 2), 0, 0, 0};
  return add({{x.words[0], x.words[1], x.words[2], x.words[3], x.words[4] & 3}}, five_times, 0);
}

// x r; the last word of x is at most 7.
WARPCIPHER_INLINE constexpr Number multiply(const Number& x, const Multiplier& m) {
  const std::uint32_t(&h)[5] = x.words;
  const std::uint64_t d0 =
      wide_product(h[0], m.r[0]) + wide_product(h[1], m.s[3]) + wide_product(h[2], m.s[2]) + wide_product(h[3], m.s[1]);
  std::uint64_t d1 = wide_product(h[0], m.r[1]) + wide_product(h[1], m.r[0]) + wide_product(h[2], m.s[3]) +
                     wide_product(h[3], m.s[2]) + wide_product(h[4], m.s[1]);
  std::uint64_t d2 = wide_product(h[0], m.r[2]) + wide_product(h[1], m.r[1]) + wide_product(h[2], m.r[0]) +
                     wide_product(h[3], m.s[3]) + wide_product(h[4], m.s[2]);
  std::uint64_t d3 = wide_product(h[0], m.r[3]) + wide_product(h[1], m.r[2]) + wide_product(h[2], m.r[1]) +
                     wide_product(h[3], m.r[0]) + wide_product(h[4], m.s[3]);
  d1 += d0 >> 32;
  d2 += d1 >> 32;
  d3 += d2 >> 32;
  return fold({{static_cast<std::uint32_t>(d0), static_cast<std::uint32_t>(d1), static_cast<std::uint32_t>(d2),
                static_cast<std::uint32_t>(d3), h[4] * m.r[0] + static_cast<std::uint32_t>(d3 >> 32)}});
}

// The limbs of x, whose last word is at most 7: the last is below 2^27.
WARPCIPHER_INLINE constexpr Element to_element(const Number& x) {
  const std::uint32_t(&w)[5] = x.words;
  return {{w[0] & limb_mask, (w[0] >> 26 | w[1] << 6) & limb_mask, (w[1] >> 20 | w[2] << 12) & limb_mask,
           (w[2] >> 14 | w[3] << 18) & limb_mask, w[3] >> 8 | w[4] << 24}};
}

WARPCIPHER_INLINE constexpr Number to_number(const Element& x) {
  const std::uint32_t(&l)[5] = x.limbs;
  const std::uint32_t upper[4] = {0, l[2] << 20, l[3] << 14, l[4] << 8};
  return add({{l[0] | l[1] << 26, l[1] >> 6, l[2] >> 12, l[3] >> 18, l[4] >> 24}}, upper, 0);
}

WARPCIPHER_INLINE constexpr Number multiply(const Number& x, const Element& factor) {
  return to_number(multiply(to_element(x), factor));
}

// The tag: (x mod p + s) mod 2^128. The last word of x is at most 7.
WARPCIPHER_INLINE constexpr void make_tag(const Number& x, const std::uint32_t (&s)[4], std::uint32_t (&tag)[4]) {
  const Number folded = fold(x);
  const std::uint32_t five[4] = {5, 0, 0, 0};
  const Number less = add(folded, five, 0);
  const std::uint32_t take = 0 - (less.words[4] >> 2);  // all ones: it is p or more
  Number chosen{};
  for (int i = 0; i < 4; ++i) chosen.words[i] = (folded.words[i] & ~take) | (less.words[i] & take);
  chosen = add(chosen, s, 0);
  for (int i = 0; i < 4; ++i) tag[i] = chosen.words[i];
}

}  // namespace warpcipher::poly1305
