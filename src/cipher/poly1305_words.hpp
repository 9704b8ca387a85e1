// SPDX-License-Identifier: Apache-2.0
// Poly1305 (poly1305.hpp) in words of 32 bits, for a lane that hashes a text from its first block to its last: 19
// products a block where limbs of 26 bits take 25, and text is added as it lies. It multiplies by r alone, whose
// cleared bits leave room for the sums. Constant time.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cipher/force_inline.hpp"
#include "cipher/wide_product.hpp"

namespace warpcipher::poly1305 {

namespace detail {

// h += w, words of one number.
WARPCIPHER_INLINE constexpr void add_words(std::uint32_t (&h)[5], std::uint32_t w0, std::uint32_t w1, std::uint32_t w2,
                                std::uint32_t w3, std::uint32_t w4) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    asm("add.cc.u32 %0, %0, %5;\n\taddc.cc.u32 %1, %1, %6;\n\taddc.cc.u32 %2, %2, %7;\n\t"
        "addc.cc.u32 %3, %3, %8;\n\taddc.u32 %4, %4, %9;"
        : "+r"(h[0]), "+r"(h[1]), "+r"(h[2]), "+r"(h[3]), "+r"(h[4])
        : "r"(w0), "r"(w1), "r"(w2), "r"(w3), "r"(w4));
    return;
  }
#endif
  const std::uint32_t words[5] = {w0, w1, w2, w3, w4};
  std::uint64_t sum = 0;
  for (int i = 0; i < 5; ++i) {
    sum += std::uint64_t{h[i]} + words[i];
    h[i] = static_cast<std::uint32_t>(sum);
    sum >>= 32;
  }
}

WARPCIPHER_INLINE constexpr std::uint32_t low_word(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
WARPCIPHER_INLINE constexpr std::uint32_t high_word(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace detail

// Plain data; the holder wipes it.
class WordHash {
 public:
  // The first half of a key, as little-endian words.
  WARPCIPHER_INLINE explicit constexpr WordHash(const std::uint32_t (&key)[4])
      : r_{key[0] & 0x0fffffffu, key[1] & 0x0ffffffcu, key[2] & 0x0ffffffcu, key[3] & 0x0ffffffcu} {
    for (int i = 0; i < 3; ++i) s_[i] = r_[i + 1] + (r_[i + 1] >> 2);
  }

  // A whole block, or one that zeros fill.
  //
  // 2^130 = 5, and words 1 to 3 of r are multiples of 4: so 2^128 r_i is 5 (r_i / 4), s_i. h is below 5 2^128 before a
  // block, and h[4] then at most 6. r_i is below 2^28 and s_i below 1.25 2^28, so sums of products are below 2^63, the
  // upper half of the last one below 2^31, and c below 2^32.
  WARPCIPHER_INLINE constexpr void add_block(const std::uint32_t (&block)[4]) {
    detail::add_words(h_, block[0], block[1], block[2], block[3], 1);
    const std::uint64_t d0 = wide_product(h_[0], r_[0]) + wide_product(h_[1], s_[2]) + wide_product(h_[2], s_[1]) +
                             wide_product(h_[3], s_[0]);
    const std::uint64_t d1 = wide_product(h_[0], r_[1]) + wide_product(h_[1], r_[0]) + wide_product(h_[2], s_[2]) +
                             wide_product(h_[3], s_[1]) + wide_product(h_[4], s_[0]);
    const std::uint64_t d2 = wide_product(h_[0], r_[2]) + wide_product(h_[1], r_[1]) + wide_product(h_[2], r_[0]) +
                             wide_product(h_[3], s_[2]) + wide_product(h_[4], s_[1]);
    const std::uint64_t d3 = wide_product(h_[0], r_[3]) + wide_product(h_[1], r_[2]) + wide_product(h_[2], r_[1]) +
                             wide_product(h_[3], r_[0]) + wide_product(h_[4], s_[2]);
    h_[4] *= r_[0];
    h_[0] = detail::low_word(d0);
    h_[1] = detail::low_word(d1);
    h_[2] = detail::low_word(d2);
    h_[3] = detail::low_word(d3);
    detail::add_words(h_, 0, detail::high_word(d0), detail::high_word(d1), detail::high_word(d2),
                      detail::high_word(d3));
    const std::uint32_t c = (h_[4] & ~3u) + (h_[4] >> 2);
    h_[4] &= 3;
    detail::add_words(h_, c, 0, 0, 0, 0);
  }

  // The tag: (h mod p + s) mod 2^128. s: the second half of the key.
  WARPCIPHER_INLINE constexpr void finish(const std::uint32_t (&s)[4], std::uint32_t (&tag)[4]) const {
    std::uint32_t h[5] = {h_[0], h_[1], h_[2], h_[3], h_[4]};
    std::uint32_t less[5] = {h_[0], h_[1], h_[2], h_[3], h_[4]};  // p, if h reaches it
    detail::add_words(less, 5, 0, 0, 0, 0);
    const std::uint32_t take = 0 - (less[4] >> 2);  // h is below 2 p: the shift gives 0 or 1
    for (int i = 0; i < 4; ++i) h[i] = (h[i] & ~take) | (less[i] & take);
    detail::add_words(h, s[0], s[1], s[2], s[3], 0);
    for (int i = 0; i < 4; ++i) tag[i] = h[i];
  }

 private:
  std::uint32_t h_[5] = {};
  std::uint32_t r_[4];
  std::uint32_t s_[3] = {};
};

}  // namespace warpcipher::poly1305
