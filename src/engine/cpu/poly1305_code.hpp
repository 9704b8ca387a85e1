// SPDX-License-Identifier: Apache-2.0
// Poly1305 (RFC 8439, section 2.5) in words of 64 bits, for processors with products of 128. All of it is in an unnamed
// namespace, for the reason that cipher/simd/128.hpp gives. Constant time: products, additions and shifts by constants.
#pragma once

#include <cstdint>
#include <cstring>

namespace warpcipher::cpu {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are taken from bytes as they lie");

__extension__ using Wide = unsigned __int128;

constexpr Wide wide(std::uint64_t word) { return word; }
constexpr std::uint64_t low(Wide sum) { return static_cast<std::uint64_t>(sum); }
constexpr std::uint64_t high(Wide sum) { return static_cast<std::uint64_t>(sum >> 64); }

inline std::uint64_t load_word(const std::uint8_t* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

inline void store_word(std::uint8_t* p, std::uint64_t word) { std::memcpy(p, &word, sizeof word); }

// sum += addend, of two and of three words. Compilers spill 128-bit additions to memory (GCC 12: 34 clocks for a
// block of Poly1305, and 15 with this).
[[gnu::always_inline]] inline void add_words(std::uint64_t (&sum)[2], std::uint64_t a0, std::uint64_t a1) {
#if defined(__x86_64__)
  __asm__("addq %2, %0\n\tadcq %3, %1" : "+&r"(sum[0]), "+r"(sum[1]) : "rm"(a0), "rme"(a1) : "cc");
#else
  const Wide low_sum = wide(sum[0]) + a0;
  sum[0] = low(low_sum);
  sum[1] += a1 + high(low_sum);
#endif
}

[[gnu::always_inline]] inline void add_words(std::uint64_t (&sum)[3], std::uint64_t a0, std::uint64_t a1,
                                             std::uint64_t a2) {
#if defined(__x86_64__)
  __asm__("addq %3, %0\n\tadcq %4, %1\n\tadcq %5, %2"
          : "+&r"(sum[0]), "+&r"(sum[1]), "+r"(sum[2])
          : "rm"(a0), "rme"(a1), "rme"(a2)
          : "cc");
#else
  const Wide sum0 = wide(sum[0]) + a0;
  const Wide sum1 = wide(sum[1]) + a1 + high(sum0);
  sum[0] = low(sum0);
  sum[1] = low(sum1);
  sum[2] += a2 + high(sum1);
#endif
}

[[gnu::always_inline]] inline void add_product(std::uint64_t (&sum)[2], std::uint64_t a, std::uint64_t b) {
  const Wide product = wide(a) * b;
  add_words(sum, low(product), high(product));
}

[[gnu::always_inline]] inline void add_product(std::uint64_t (&sum)[3], std::uint64_t a, std::uint64_t b) {
  const Wide product = wide(a) * b;
  add_words(sum, low(product), high(product), 0);
}

// The sum so far, a number of three words below 2^131, and its factor. r1 is a multiple of 4 (section
// 2.5.1), so 2^128 r1 = 2^130 r1 / 4, and modulo p that is 5 r1 / 4.
struct Poly1305Words {
  std::uint64_t h[3];
  std::uint64_t r0, r1, folded;  // folded: 5 r1 / 4

  [[gnu::always_inline]] inline void start(const std::uint8_t* key) {
    h[0] = h[1] = h[2] = 0;
    r0 = load_word(key) & 0x0ffffffc0fffffff;
    r1 = load_word(key + 8) & 0x0ffffffc0ffffffc;
    folded = r1 + (r1 >> 2);
  }

  // One block of 16 bytes.
#if defined(__x86_64__) && defined(__BMI2__)
  // The same in 28 instructions: between rounds of vectors, compilers' code (45) takes issue slots from these.
  [[gnu::always_inline]] inline void add(const std::uint8_t* block) {
    std::uint64_t high0, low1, high1, high2;
    __asm__(
        "addq %[block0], %[h0]\n\t"
        "adcq %[block1], %[h1]\n\t"
        "adcq $1, %[h2]\n\t"
        "movq %[h0], %%rdx\n\t"
        "mulxq %[r0], %[h0], %[high0]\n\t"
        "mulxq %[r1], %[low1], %[high1]\n\t"
        "movq %[h1], %%rdx\n\t"
        "mulxq %[folded], %[h1], %[high2]\n\t"
        "addq %[h1], %[h0]\n\t"
        "adcq %[high2], %[high0]\n\t"
        "mulxq %[r0], %[h1], %[high2]\n\t"
        "addq %[low1], %[h1]\n\t"
        "adcq %[high2], %[high1]\n\t"
        "movq %[h2], %[low1]\n\t"
        "imulq %[folded], %[low1]\n\t"
        "imulq %[r0], %[h2]\n\t"
        "addq %[low1], %[h1]\n\t"
        "adcq %[h2], %[high1]\n\t"
        "addq %[high0], %[h1]\n\t"
        "adcq $0, %[high1]\n\t"
        // The part at 2^130 and above, times 5.
        "movq %[high1], %[h2]\n\t"
        "shrq $2, %[high1]\n\t"
        "andq $3, %[h2]\n\t"
        "leaq (%[high1], %[high1], 4), %[high1]\n\t"
        "addq %[high1], %[h0]\n\t"
        "adcq $0, %[h1]\n\t"
        "adcq $0, %[h2]"
        : [h0] "+&r"(h[0]), [h1] "+&r"(h[1]), [h2] "+&r"(h[2]), [high0] "=&r"(high0), [low1] "=&r"(low1),
          [high1] "=&r"(high1), [high2] "=&r"(high2)
        : [block0] "m"(*reinterpret_cast<const std::uint8_t(*)[8]>(block)),
          [block1] "m"(*reinterpret_cast<const std::uint8_t(*)[8]>(block + 8)), [r0] "rm"(r0), [r1] "rm"(r1),
          [folded] "rm"(folded)
        : "rdx", "cc");
  }
#else
  [[gnu::always_inline]] inline void add(const std::uint8_t* block) {
    add_words(h, load_word(block), load_word(block + 8), 1);
    std::uint64_t product0[2] = {}, product1[2] = {h[2] * folded, 0};
    add_product(product0, h[0], r0);
    add_product(product0, h[1], folded);
    add_product(product1, h[0], r1);
    add_product(product1, h[1], r0);
    add_words(product1, product0[1], h[2] * r0);
    // The part at 2^130 and above, times 5.
    h[0] = product0[0];
    h[1] = product1[0];
    h[2] = product1[1] & 3;
    add_words(h, (product1[1] & ~std::uint64_t{3}) + (product1[1] >> 2), 0, 0);
  }
#endif

  inline void add_blocks(const std::uint8_t* text, std::size_t blocks) {
    Poly1305Words words = *this;  // in registers
    for (; blocks != 0; --blocks, text += 16) words.add(text);
    *this = words;
  }

  // The sum, and after it the sum of further blocks, which began with nothing. power: r to the number of these.
  inline void join(const std::uint64_t (&power)[3], const std::uint64_t (&other)[3]) {
    multiply(power);
    add_words(h, other[0], other[1], other[2]);
    fold();
  }

  // The part at 2^130 and above, times 5.
  inline void fold() {
    const std::uint64_t above = h[2] >> 2;
    h[2] &= 3;
    add_words(h, 5 * above, 0, 0);
  }

  // h times `a`, both below 2^132; then little more than 2^130 at most.
  inline void multiply(const std::uint64_t (&a)[3]) {
    // Two words and a third of carries at each place: the parts at 2^0, 2^64 and 2^128 and above.
    std::uint64_t at0[3] = {}, at1[3] = {}, at2[3] = {};
    add_product(at0, h[0], a[0]);
    add_product(at1, h[0], a[1]);
    add_product(at1, h[1], a[0]);
    add_product(at2, h[1], a[1]);
    add_product(at2, h[0], a[2]);
    add_product(at2, h[2], a[0]);
    std::uint64_t high_words[3] = {at2[0], at2[1], at2[2] + h[2] * a[2]};
    const Wide at3 = wide(h[1]) * a[2] + wide(h[2]) * a[1];
    add_words(high_words, 0, low(at3), high(at3));
    std::uint64_t middle[3] = {at0[1], 0, 0};
    add_words(middle, at1[0], at1[1], at1[2]);
    add_words(high_words, middle[1], middle[2], 0);
    h[0] = at0[0];
    h[1] = middle[0];
    h[2] = high_words[0] & 3;
    // The part at 2^130 and above, times 5.
    const std::uint64_t above[3] = {high_words[0] >> 2 | high_words[1] << 62, high_words[1] >> 2 | high_words[2] << 62,
                                    high_words[2] >> 2};
    add_words(h, above[0] << 2, above[1] << 2 | above[0] >> 62, above[2] << 2 | above[1] >> 62);
    add_words(h, above[0], above[1], above[2]);
    fold();
  }

  // A text, filled up with zeros to blocks (section 2.8).
  inline void add_padded(const std::uint8_t* text, std::size_t len) {
    add_blocks(text, len / 16);
    if (len % 16 == 0) return;
    std::uint8_t last[16] = {};
    for (std::size_t i = 0; i < len % 16; ++i) last[i] = text[len / 16 * 16 + i];
    add(last);
  }

  // (h mod p + s) mod 2^128. p is subtracted if h + 5 reaches 2^130: h is below 2 p.
  inline void finish(const std::uint8_t* s, std::uint8_t* tag) const {
    const Wide less0 = wide(h[0]) + 5;
    const Wide less1 = wide(h[1]) + high(less0);
    const std::uint64_t take = 0 - ((h[2] + high(less1)) >> 2);
    const Wide sum0 = wide((h[0] & ~take) | (low(less0) & take)) + load_word(s);
    const Wide sum1 = wide((h[1] & ~take) | (low(less1) & take)) + load_word(s + 8) + high(sum0);
    store_word(tag, low(sum0));
    store_word(tag + 8, low(sum1));
  }
};

}  // namespace
}  // namespace warpcipher::cpu
