// SPDX-License-Identifier: Apache-2.0
// ChaCha20 and its AEAD with Poly1305 (RFC 8439), a block of key stream in each lane. All of it is in an unnamed
// namespace, for the reason that cipher/simd/128.hpp gives.
//
// Vector i has word i of the states of all blocks, so that a round is the same for all lanes; at the end the vectors
// are transposed to blocks. Poly1305 runs on the other pipes of a core: between the rounds of a group of blocks the
// ciphertext of the group before is hashed (when decrypting, the group itself).
//
//            | block 0: key of Poly1305 | text 0 ..        group 0 |   text ..    group 1 |   text ..    group 2 |
//   encrypt  |                              AAD                    | hash of group 0      | hash of group 1      | ...
//   decrypt  |                              AAD, hash of group 0   | hash of group 1      | hash of group 2      |
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cipher/simd/128.hpp"
#include "engine/cpu/lanes.hpp"
#include "engine/cpu/poly1305_code.hpp"

namespace warpcipher::cpu {
namespace {

inline void forget_secret(void* data, std::size_t size) {
  std::memset(data, 0, size);
  __asm__ __volatile__("" : : "r"(data) : "memory");
}

// The order of the bytes of 32 whose words are rotated by 8 or 16 bits.
template <int Bits>
struct RotatedBytes {
  alignas(32) std::uint8_t order[32];

  constexpr RotatedBytes() : order{} {
    for (int i = 0; i < 32; ++i) order[i] = static_cast<std::uint8_t>(i % 16 / 4 * 4 + ((i - Bits / 8) & 3));
  }
};
template <int Bits>
constexpr RotatedBytes<Bits> rotated_bytes;

template <class Simd>
struct ChaChaCode {
  using Vector = typename Simd::Vector;
  static constexpr std::size_t blocks = Simd::words;
  static constexpr std::size_t group_len = blocks * chacha::block_len;
  static_assert(sizeof(Vector) == 4 * blocks);
  static constexpr std::size_t parts = 16 / blocks;  // vectors of a block
  static constexpr bool two_sums = blocks == 16;
  static constexpr std::size_t least_for_two_sums = 2 * group_len;

  static void apply(const chacha::State& first, const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    Columns columns(first);
    for (; len >= group_len; in += group_len, out += group_len, len -= group_len)
      columns.make([](auto) {}, Add{in, out});
    if (len == 0) return;
    alignas(64) std::uint8_t stream[group_len];
    columns.make([](auto) {}, Store{stream});
    add_bytes(out, in, stream, len);
    forget_secret(stream, sizeof stream);
  }

  static void generate(const chacha::State& first, std::uint8_t* out, std::size_t count) {
    Columns columns(first);
    for (; count >= blocks; out += group_len, count -= blocks) columns.make([](auto) {}, Store{out});
    if (count == 0) return;
    alignas(64) std::uint8_t stream[group_len];
    columns.make([](auto) {}, Store{stream});
    std::memcpy(out, stream, count * chacha::block_len);
    forget_secret(stream, sizeof stream);
  }

  static void key_streams(const chacha::State* states, std::size_t count, std::uint8_t* out) {
    for (; count >= blocks; states += blocks, out += group_len, count -= blocks) {
      Columns(states).make([](auto) {}, Store{out});
    }
    if (count == 0) return;
    chacha::State some[blocks] = {};
    alignas(64) std::uint8_t stream[group_len];
    std::memcpy(some, states, count * sizeof *states);
    Columns(some).make([](auto) {}, Store{stream});
    std::memcpy(out, stream, count * chacha::block_len);
    forget_secret(some, sizeof some);
    forget_secret(stream, sizeof stream);
  }

  template <bool Encrypting>
  static void transform(const chacha::State& first, const ChaChaText& text, std::uint8_t (&tag)[16]) {
    alignas(64) std::uint8_t stream[group_len];
    Columns columns(first);
    columns.make([](auto) {}, Store{stream});
    const std::size_t begun = std::min(text.len, group_len - chacha::block_len);
    Poly1305Words hash;
    hash.start(stream);
    hash.add_padded(text.aad, text.aad_len);
    if (!Encrypting) hash.add_padded(text.in, begun);
    add_bytes(text.out, text.in, stream + chacha::block_len, begun);
    hash = run_text<Encrypting>(columns, hash, text, begun);
    finish(hash, stream + 16, text, tag);
    forget_secret(stream, sizeof stream);
    forget_secret(&hash, sizeof hash);
  }

  template <bool Encrypting>
  static void transform_short(const std::uint8_t* key_stream, const ChaChaText& text, std::uint8_t (&tag)[16]) {
    Poly1305Words hash;
    hash.start(key_stream);
    hash.add_padded(text.aad, text.aad_len);
    if (!Encrypting) hash.add_padded(text.in, text.len);
    add_bytes(text.out, text.in, key_stream + chacha::block_len, text.len);
    if (Encrypting) hash.add_padded(text.out, text.len);
    finish(hash, key_stream + 16, text, tag);
    forget_secret(&hash, sizeof hash);
  }

  template <bool Encrypting>
  static void transform_part(const chacha::State& first, const std::uint8_t* key, const ChaChaText& part,
                             ChaChaHash& made) {
    Columns columns(first);
    Poly1305Words hash;
    hash.start(key);
    hash.add_padded(part.aad, part.aad_len);
    hash = run_text<Encrypting>(columns, hash, part, 0);
    std::memcpy(made, hash.h, sizeof made);
    forget_secret(&hash, sizeof hash);
  }

 private:
  // r to the number of blocks of half a group.
  using HalfPower = std::uint64_t[3];

  // Where key stream goes: vector i of a group is bytes i * sizeof(Vector) and on.
  struct Store {
    std::uint8_t* out;

    [[gnu::always_inline]] inline void operator()(std::size_t i, Vector made) const {
      Simd::store(out + i * sizeof(Vector), made);
    }
  };

  // To a text of a group, which lies where the sum goes or elsewhere.
  struct Add {
    const std::uint8_t* in;
    std::uint8_t* out;

    [[gnu::always_inline]] inline void operator()(std::size_t i, Vector made) const {
      const std::size_t at = i * sizeof(Vector);
      Simd::store(out + at, Simd::exclusive_or(Simd::load(in + at), made));
    }
  };

  // The states of a group.
  class Columns {
   public:
    // Blocks that count on from `first`.
    explicit Columns(const chacha::State& first) {
      for (int i = 0; i < 16; ++i) start_[i] = Simd::broadcast(first.words[i]);
      start_[12] = Simd::add_words(start_[12], Simd::numbers());
    }

    // A block for each of `blocks` states.
    explicit Columns(const chacha::State* states) {
      for (std::size_t i = 0; i < 16; ++i) {
        start_[i] = Simd::load(reinterpret_cast<const std::uint8_t*>(states) + i * sizeof(Vector));
      }
      to_columns(start_);
    }

    Columns(const Columns&) = delete;
    Columns& operator=(const Columns&) = delete;
    ~Columns() { forget_secret(start_, sizeof start_); }

    // Makes the key stream of the group, and calls meanwhile() after each half of a round, with whether it is the
    // second. Then counts on.
    template <class Meanwhile, class Sink>
    [[gnu::always_inline]] inline void make(const Meanwhile& meanwhile, const Sink& sink) {
      Vector x[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) x[i] = start_[i];
      for (int round = 0; round < chacha::double_rounds; ++round) {
        quarter_rounds(x[0], x[4], x[8], x[12], x[1], x[5], x[9], x[13]);
        meanwhile(std::false_type());
        quarter_rounds(x[2], x[6], x[10], x[14], x[3], x[7], x[11], x[15]);
        meanwhile(std::true_type());
        quarter_rounds(x[0], x[5], x[10], x[15], x[1], x[6], x[11], x[12]);
        meanwhile(std::false_type());
        quarter_rounds(x[2], x[7], x[8], x[13], x[3], x[4], x[9], x[14]);
        meanwhile(std::true_type());
      }
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) x[i] = Simd::add_words(x[i], start_[i]);
      start_[12] = Simd::add_words(start_[12], Simd::broadcast(blocks));
      to_blocks(x, sink);
    }

   private:
    Vector start_[16];
  };

  // Two quarter rounds of other vectors, one step of each in turn: by itself, each step waits for the one before.
  [[gnu::always_inline]] static inline void quarter_rounds(Vector& a, Vector& b, Vector& c, Vector& d, Vector& e,
                                                           Vector& f, Vector& g, Vector& h) {
    half_rounds<16, 12>(a, b, c, d, e, f, g, h);
    half_rounds<8, 7>(a, b, c, d, e, f, g, h);
  }

  template <int OfD, int OfB>
  [[gnu::always_inline]] static inline void half_rounds(Vector& a, Vector& b, Vector& c, Vector& d, Vector& e,
                                                        Vector& f, Vector& g, Vector& h) {
    if constexpr (blocks == 8) {
      half_rounds_avx2<OfD, OfB>(a, b, c, d, e, f, g, h);
    } else {
      a = Simd::add_words(a, b);
      e = Simd::add_words(e, f);
      d = Simd::template rotate_words<OfD>(Simd::exclusive_or(d, a));
      h = Simd::template rotate_words<OfD>(Simd::exclusive_or(h, e));
      c = Simd::add_words(c, d);
      g = Simd::add_words(g, h);
      b = Simd::template rotate_words<OfB>(Simd::exclusive_or(b, c));
      f = Simd::template rotate_words<OfB>(Simd::exclusive_or(f, g));
    }
  }

  // Inline assembly: the 16 state vectors and 2 temporaries exceed the 16 AVX2 registers, and compilers spill badly:
  // without it ChaCha20 makes 0.92 of this rate, and 0.96 one quarter round after the other. So two of the third row
  // wait in memory, while others are in use.
  template <int OfD, int OfB>
  [[gnu::always_inline]] static inline void half_rounds_avx2(Vector& a, Vector& b, Vector& c, Vector& d, Vector& e,
                                                             Vector& f, Vector& g, Vector& h) {
    Vector t, u;
    __asm__(
        "vpaddd %[b], %[a], %[a]\n\t"
        "vpaddd %[f], %[e], %[e]\n\t"
        "vpxor %[a], %[d], %[d]\n\t"
        "vpxor %[e], %[h], %[h]\n\t"
        "vpshufb %[order], %[d], %[d]\n\t"
        "vpshufb %[order], %[h], %[h]\n\t"
        "vpaddd %[d], %[c], %[c]\n\t"
        "vpaddd %[h], %[g], %[g]\n\t"
        "vpxor %[c], %[b], %[b]\n\t"
        "vpxor %[g], %[f], %[f]\n\t"
        "vpslld %[left], %[b], %[t]\n\t"
        "vpsrld %[right], %[b], %[b]\n\t"
        "vpslld %[left], %[f], %[u]\n\t"
        "vpsrld %[right], %[f], %[f]\n\t"
        "vpor %[t], %[b], %[b]\n\t"
        "vpor %[u], %[f], %[f]"
        : [a] "+x"(a), [b] "+x"(b), [c] "+x"(c), [d] "+x"(d), [e] "+x"(e), [f] "+x"(f), [g] "+x"(g), [h] "+x"(h),
          [t] "=&x"(t), [u] "=&x"(u)
        : [order] "m"(*reinterpret_cast<const Vector*>(rotated_bytes<OfD>.order)), [left] "i"(OfB),
          [right] "i"(32 - OfB));
  }

  // Of words: 4 by 4 in each block of a vector, then of the blocks.
  [[gnu::always_inline]] static inline void transpose(Vector (&x)[blocks]) {
    Vector fours[blocks / 4][4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < blocks; i += 4) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j) fours[i / 4][j] = x[i + j];
      simd::transpose_words<Simd>(fours[i / 4]);
    }
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      if constexpr (blocks == 4) {
        x[k] = fours[0][k];
      } else if constexpr (blocks == 8) {
        x[k] = Simd::low_blocks(fours[0][k], fours[1][k]);
        x[k + 4] = Simd::high_blocks(fours[0][k], fours[1][k]);
      } else {
        const Vector even01 = Simd::template take_blocks<0x88>(fours[0][k], fours[1][k]);
        const Vector odd01 = Simd::template take_blocks<0xdd>(fours[0][k], fours[1][k]);
        const Vector even23 = Simd::template take_blocks<0x88>(fours[2][k], fours[3][k]);
        const Vector odd23 = Simd::template take_blocks<0xdd>(fours[2][k], fours[3][k]);
        x[k] = Simd::template take_blocks<0x88>(even01, even23);
        x[k + 4] = Simd::template take_blocks<0x88>(odd01, odd23);
        x[k + 8] = Simd::template take_blocks<0xdd>(even01, even23);
        x[k + 12] = Simd::template take_blocks<0xdd>(odd01, odd23);
      }
    }
  }

  // Vectors of words to blocks: vector `part` of block i goes to the sink as number parts * i + part.
  template <class Sink>
  [[gnu::always_inline]] static inline void to_blocks(const Vector (&x)[16], const Sink& sink) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < parts; ++part) {
      Vector rows[blocks];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < blocks; ++i) rows[i] = x[blocks * part + i];
      transpose(rows);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < blocks; ++i) sink(parts * i + part, rows[i]);
    }
  }

  // The way back.
  static void to_columns(Vector (&x)[16]) {
    Vector from[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) from[i] = x[i];
#pragma GCC unroll 4
    for (std::size_t part = 0; part < parts; ++part) {
      Vector rows[blocks];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < blocks; ++i) rows[i] = from[parts * i + part];
      transpose(rows);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < blocks; ++i) x[blocks * part + i] = rows[i];
    }
  }

  // out = a ^ b
  static void add_bytes(std::uint8_t* out, const std::uint8_t* a, const std::uint8_t* b, std::size_t len) {
    std::size_t i = 0;
    for (; i + 16 <= len; i += 16) {
      store_word(out + i, load_word(a + i) ^ load_word(b + i));
      store_word(out + i + 8, load_word(a + i + 8) ^ load_word(b + i + 8));
    }
    for (; i < len; ++i) out[i] = static_cast<std::uint8_t>(a[i] ^ b[i]);
  }

  // Makes a group of key stream and hashes `len` bytes meanwhile: all of them before the key stream goes to the sink,
  // if they are whole blocks, and a group at most.
  template <class Sink>
  [[gnu::always_inline]] static inline void make_and_hash(Columns& columns, const Sink& sink, Poly1305Words& hash,
                                                          const std::uint8_t* text, std::size_t len) {
    // Blocks to be hashed after each round: all of a group in 16 of the 20 rounds. Nothing hides the time of blocks
    // that are left for after the rounds (12 of 32: 20% slower).
    constexpr std::size_t step = group_len / 16 / 16;
    Poly1305Words words = hash;  // in registers
    const std::uint8_t* const whole = text + len / (16 * step) * (16 * step);
    const std::uint8_t* at = text;
    columns.make(
        [&](auto ends_round) __attribute__((always_inline)) {
          if (!ends_round || at == whole) return;
#pragma GCC unroll 4
          for (std::size_t i = 0; i < step; ++i) words.add(at + 16 * i);
          at += 16 * step;
        },
        sink);
    hash = words;
    hash.add_padded(whole, static_cast<std::size_t>(text + len - whole));
  }

  // The same of a whole group, as two sums, of its first half and of its second: of one, each block waits for the one
  // before, and on AVX-512 the rounds do not take as long as that. A block of each after four halves of rounds of five.
  // Fetches texts ahead, which processors do only within a page: of 4 MiB that is 15%.
  [[gnu::always_inline]] static inline void make_and_hash_group(Columns& columns, const Add& add, Poly1305Words& hash,
                                                                const HalfPower& power, const std::uint8_t* text) {
    constexpr std::size_t half = group_len / 2;
    static_assert(half / 16 * 5 == 4 * chacha::double_rounds * 4);
    Poly1305Words first = hash, second = hash;
    second.h[0] = second.h[1] = second.h[2] = 0;
    int halves = 0;
    const std::uint8_t* ahead = add.in + 3 * group_len;
    columns.make(
        [&](auto) __attribute__((always_inline)) {
          if (++halves == 5) {
            halves = 0;
            return;
          }
          if (halves % 2 == 0) {
            __builtin_prefetch(ahead);
            ahead += 64;
          }
          first.add(text);
          second.add(text + half);
          text += 16;
        },
        add);
    first.join(power, second.h);
    hash = first;
  }

  static void make_half_power(const Poly1305Words& hash, HalfPower& power) {
    Poly1305Words square = hash;
    square.h[0] = hash.r0;
    square.h[1] = hash.r1;
    square.h[2] = 0;
    for (std::size_t blocks_in_half = group_len / 32; blocks_in_half > 1; blocks_in_half /= 2) {
      std::uint64_t factor[3] = {square.h[0], square.h[1], square.h[2]};
      square.multiply(factor);
    }
    std::memcpy(power, square.h, sizeof power);
    forget_secret(&square, sizeof square);
  }

  // The text from `begun` on. When encrypting, the text before that is still to be hashed.
  template <bool Encrypting>
  static Poly1305Words run_text(Columns& columns, Poly1305Words hash, const ChaChaText& text, std::size_t begun) {
    std::size_t at = begun, unhashed = Encrypting ? begun : 0;
    if constexpr (two_sums) {
      if (text.len - at >= least_for_two_sums) {
        HalfPower power;
        make_half_power(hash, power);
        if (Encrypting) {
          make_and_hash(columns, Add{text.in + at, text.out + at}, hash, text.out + at - unhashed, unhashed);
          at += group_len;
          unhashed = group_len;
        }
        for (; text.len - at >= group_len; at += group_len) {
          const std::uint8_t* const hashed = Encrypting ? text.out + at - group_len : text.in + at;
          make_and_hash_group(columns, Add{text.in + at, text.out + at}, hash, power, hashed);
        }
        forget_secret(&power, sizeof power);
      }
    }
    for (; text.len - at >= group_len; at += group_len) {
      const Add add{text.in + at, text.out + at};
      if (Encrypting) {
        make_and_hash(columns, add, hash, text.out + at - unhashed, unhashed);
        unhashed = group_len;
      } else {
        make_and_hash(columns, add, hash, text.in + at, group_len);
      }
    }
    if (const std::size_t len = text.len - at; len != 0) {
      alignas(64) std::uint8_t stream[group_len];
      if (Encrypting) {
        make_and_hash(columns, Store{stream}, hash, text.out + at - unhashed, unhashed);
      } else {
        make_and_hash(columns, Store{stream}, hash, text.in + at, len);
      }
      add_bytes(text.out + at, text.in + at, stream, len);
      forget_secret(stream, sizeof stream);
      unhashed = len;
    }
    if (Encrypting) hash.add_padded(text.out + text.len - unhashed, unhashed);
    return hash;
  }

  // Section 2.8: the lengths, and the second half of the key.
  static void finish(Poly1305Words& hash, const std::uint8_t* s, const ChaChaText& text, std::uint8_t (&tag)[16]) {
    std::uint8_t lengths[16];
    store_word(lengths, text.aad_len);
    store_word(lengths + 8, text.len);
    hash.add(lengths);
    hash.finish(s, tag);
  }
};

template <class Simd, class Code = ChaChaCode<Simd>>
constexpr ChaChaLanes chacha_lanes{Simd::name,
                                   Simd::words,
                                   Code::apply,
                                   Code::generate,
                                   Code::key_streams,
                                   Code::template transform<true>,
                                   Code::template transform<false>,
                                   Code::template transform_short<true>,
                                   Code::template transform_short<false>,
                                   Code::template transform_part<true>,
                                   Code::template transform_part<false>};

}  // namespace
}  // namespace warpcipher::cpu
