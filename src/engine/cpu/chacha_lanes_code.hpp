// SPDX-License-Identifier: Apache-2.0
// The source that chacha_lanes_*.cpp compile, each for its own instruction set. All of it is in an unnamed namespace: a
// function that the linker could merge with another file's copy might run instructions that the processor lacks.
//
// Vector i has word i of the states of all blocks, so that a round is the same for all lanes; at the end the vectors
// are transposed to blocks. Poly1305 runs on the other pipes of a core: between the rounds of a group of blocks the
// ciphertext of the group before is hashed (when decrypting, that of the group itself).
//
//            | block 0: key of Poly1305 | text 0 ..        group 0 |   text ..    group 1 |   text ..    group 2 |
//   encrypt  |                              AAD                    | hash of group 0      | hash of group 1      | ...
//   decrypt  |                              AAD, hash of group 0   | hash of group 1      | hash of group 2      |
#pragma once

#include <algorithm>
#include <cstring>

#include "engine/cpu/chacha_lanes.hpp"
#include "engine/cpu/poly1305_words.hpp"

namespace warpcipher::cpu {
namespace {

inline void forget_secret(void* data, std::size_t size) {
  std::memset(data, 0, size);
  __asm__ __volatile__("" : : "r"(data) : "memory");
}

template <class Lanes>
struct ChaChaLanesCode {
  using Vector = typename Lanes::Vector;
  static constexpr std::size_t blocks = Lanes::blocks;
  static constexpr std::size_t group_len = blocks * chacha::block_len;
  static_assert(sizeof(Vector) == 4 * blocks);

  static void apply(const chacha::State& first, const std::uint8_t* in, std::uint8_t* out, std::size_t len) {
    Columns columns(first);
    for (; len >= group_len; in += group_len, out += group_len, len -= group_len) {
      columns.make([] {});
      columns.add(in, out);
    }
    if (len != 0) {
      columns.make([] {});
      columns.add_short(in, out, len);
    }
  }

  static void key_streams(const chacha::State* states, std::size_t count, std::uint8_t* out) {
    for (; count >= blocks; states += blocks, out += group_len, count -= blocks) Columns(states).store(out);
    if (count == 0) return;
    chacha::State some[blocks] = {};
    alignas(64) std::uint8_t stream[group_len];
    std::memcpy(some, states, count * sizeof *states);
    Columns(some).store(stream);
    std::memcpy(out, stream, count * chacha::block_len);
    forget_secret(some, sizeof some);
    forget_secret(stream, sizeof stream);
  }

  template <bool Encrypting>
  static void transform(const chacha::State& first, const ChaChaText& text, std::uint8_t (&tag)[16]) {
    alignas(64) std::uint8_t stream[group_len];
    Columns columns(first);
    columns.make([] {});
    columns.store_made(stream);
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
  // The states of a group, and the vectors in work.
  class Columns {
   public:
    // Blocks that count on from that of `first`.
    explicit Columns(const chacha::State& first) {
      for (int i = 0; i < 16; ++i) start_[i] = Lanes::broadcast(first.words[i]);
      start_[12] = Lanes::add(start_[12], Lanes::numbers());
    }

    // A block for each of `blocks` states.
    explicit Columns(const chacha::State* states) {
      for (std::size_t i = 0; i < 16; ++i) {
        start_[i] = Lanes::load(reinterpret_cast<const std::uint8_t*>(states) + i * sizeof(Vector));
      }
      Lanes::to_columns(start_);
    }

    Columns(const Columns&) = delete;
    Columns& operator=(const Columns&) = delete;
    ~Columns() {
      forget_secret(start_, sizeof start_);
      forget_secret(made_, sizeof made_);
    }

    // Makes the key stream of the group, and calls meanwhile() after each round. Then counts on.
    template <class Meanwhile>
    [[gnu::always_inline]] inline void make(const Meanwhile& meanwhile) {
      Vector x[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) x[i] = start_[i];
      for (int round = 0; round < chacha::double_rounds; ++round) {
        quarter_round(x[0], x[4], x[8], x[12]);
        quarter_round(x[1], x[5], x[9], x[13]);
        quarter_round(x[2], x[6], x[10], x[14]);
        quarter_round(x[3], x[7], x[11], x[15]);
        meanwhile();
        quarter_round(x[0], x[5], x[10], x[15]);
        quarter_round(x[1], x[6], x[11], x[12]);
        quarter_round(x[2], x[7], x[8], x[13]);
        quarter_round(x[3], x[4], x[9], x[14]);
        meanwhile();
      }
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) x[i] = Lanes::add(x[i], start_[i]);
      Lanes::to_blocks(x);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) made_[i] = x[i];
      start_[12] = Lanes::add(start_[12], Lanes::broadcast(blocks));
    }

    // What make() has made: to a text of a group, to fewer bytes, or alone.
    void add(const std::uint8_t* in, std::uint8_t* out) const {
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t at = i * sizeof(Vector);
        Lanes::store(out + at, Lanes::exclusive_or(Lanes::load(in + at), made_[i]));
      }
    }
    void add_short(const std::uint8_t* in, std::uint8_t* out, std::size_t len) const {
      add_bytes(out, in, reinterpret_cast<const std::uint8_t*>(made_), len);
    }
    void store_made(std::uint8_t* out) const { std::memcpy(out, made_, sizeof made_); }

    void store(std::uint8_t* out) {
      make([] {});
      store_made(out);
    }

   private:
    [[gnu::always_inline]] static inline void quarter_round(Vector& a, Vector& b, Vector& c, Vector& d) {
      a = Lanes::add(a, b);
      d = Lanes::template rotate<16>(Lanes::exclusive_or(d, a));
      c = Lanes::add(c, d);
      b = Lanes::template rotate<12>(Lanes::exclusive_or(b, c));
      a = Lanes::add(a, b);
      d = Lanes::template rotate<8>(Lanes::exclusive_or(d, a));
      c = Lanes::add(c, d);
      b = Lanes::template rotate<7>(Lanes::exclusive_or(b, c));
    }

    Vector start_[16], made_[16];
  };

  // out = a ^ b
  static void add_bytes(std::uint8_t* out, const std::uint8_t* a, const std::uint8_t* b, std::size_t len) {
    std::size_t i = 0;
    for (; i + 16 <= len; i += 16) {
      store_word(out + i, load_word(a + i) ^ load_word(b + i));
      store_word(out + i + 8, load_word(a + i + 8) ^ load_word(b + i + 8));
    }
    for (; i < len; ++i) out[i] = static_cast<std::uint8_t>(a[i] ^ b[i]);
  }

  // The text from `begun` on. When encrypting, what is before that is still to be hashed.
  template <bool Encrypting>
  static Poly1305Words run_text(Columns& columns, Poly1305Words hash, const ChaChaText& text, std::size_t begun) {
    // Blocks to be hashed behind each round: all of a group in 16 of the 20 rounds. Where some are left for the time
    // after the rounds nothing hides them (12 of 32: 20% slower).
    constexpr std::size_t step = group_len / 16 / 16;
    const std::uint8_t* hashed = Encrypting ? text.out : text.in + begun;
    std::size_t left = Encrypting ? begun : 0;  // bytes to be hashed there
    for (std::size_t at = begun; at < text.len;) {
      const std::size_t len = std::min(group_len, text.len - at);
      if (!Encrypting) left = len;
      Poly1305Words words = hash;  // in registers
      std::size_t whole = left / 16;
      columns.make([&]() __attribute__((always_inline)) {
        if (whole < step) return;
        for (std::size_t i = 0; i < step; ++i) words.add(hashed + 16 * i);
        hashed += 16 * step;
        whole -= step;
      });
      hash = words;
      hash.add_padded(hashed, 16 * whole + left % 16);
      hashed += 16 * whole + left % 16;
      if (len == group_len) {
        columns.add(text.in + at, text.out + at);
      } else {
        columns.add_short(text.in + at, text.out + at, len);
      }
      left = len;
      at += len;
    }
    if (Encrypting) hash.add_padded(hashed, left);
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

template <class Lanes>
constexpr ChaChaLanes make_chacha_lanes(const char* name) {
  using Code = ChaChaLanesCode<Lanes>;
  return {name,
          Lanes::blocks,
          Code::apply,
          Code::key_streams,
          Code::template transform<true>,
          Code::template transform<false>,
          Code::template transform_short<true>,
          Code::template transform_short<false>,
          Code::template transform_part<true>,
          Code::template transform_part<false>};
}

}  // namespace
}  // namespace warpcipher::cpu
