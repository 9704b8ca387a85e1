// SPDX-License-Identifier: Apache-2.0
// Generators of ChaCha, a seed's block in each lane, and the sum of a table's records. GCC's own vectors: wider ones
// than the processor's become several. All of it is in an unnamed namespace, for the reason that cipher/simd/128.hpp
// gives.
#pragma once

#include <algorithm>
#include <cstring>

#include "prg/node_passes.hpp"

namespace warpcipher::prg {
namespace {

constexpr std::size_t chacha_seeds = 16;  // at a time
using LaneWords [[gnu::vector_size(4 * chacha_seeds), gnu::may_alias]] = std::uint32_t;

[[gnu::always_inline]] inline void quarter_round(LaneWords& a, LaneWords& b, LaneWords& c, LaneWords& d) {
  a += b;
  d ^= a;
  d = d << 16 | d >> 16;
  c += d;
  b ^= c;
  b = b << 12 | b >> 20;
  a += b;
  d ^= a;
  d = d << 8 | d >> 24;
  c += d;
  b ^= c;
  b = b << 7 | b >> 25;
}

inline void expand_chacha(Generator generator, const std::uint8_t* seeds, std::size_t count, int first, int children,
                          std::uint8_t* out) {
  const int rounds = double_rounds_of(generator);
  std::uint32_t words[16][chacha_seeds] = {};
  while (count != 0) {
    const std::size_t n = std::min(count, chacha_seeds);
    LaneWords start[4], x[16];
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t seed[4];
      std::memcpy(seed, seeds + block_len * i, block_len);
      for (int w = 0; w < 4; ++w) words[w][i] = seed[w];
    }
    for (int i = 0; i < 4; ++i) {
      std::memcpy(&start[i], words[i], sizeof start[i]);
      x[i] = LaneWords{} + chacha_row(i);
      x[4 + i] = x[8 + i] = start[i];
      x[12 + i] = LaneWords{};
    }
    for (int r = 0; r < rounds; ++r) {
      quarter_round(x[0], x[4], x[8], x[12]);
      quarter_round(x[1], x[5], x[9], x[13]);
      quarter_round(x[2], x[6], x[10], x[14]);
      quarter_round(x[3], x[7], x[11], x[15]);
      quarter_round(x[0], x[5], x[10], x[15]);
      quarter_round(x[1], x[6], x[11], x[12]);
      quarter_round(x[2], x[7], x[8], x[13]);
      quarter_round(x[3], x[4], x[9], x[14]);
    }
    for (int i = 0; i < 4; ++i) {
      x[i] += chacha_row(i);
      x[4 + i] += start[i];
      x[8 + i] += start[i];
    }
    for (int w = 0; w < 4 * children; ++w) std::memcpy(words[w], &x[4 * first + w], sizeof words[w]);
    for (std::size_t i = 0; i < n; ++i) {
      for (int w = 0; w < 4 * children; ++w) {
        std::memcpy(out + block_len * static_cast<std::size_t>(children) * i + 4 * w, &words[w][i], 4);
      }
    }
    seeds += block_len * n;
    out += block_len * static_cast<std::size_t>(children) * n;
    count -= n;
  }
  std::memset(words, 0, sizeof words);
  __asm__ __volatile__("" : : "r"(words) : "memory");
}

// The sum of columns of 64 bytes stays in registers. GF(2): a factor is the mask of a bit.
template <class Word, bool Bits>
void add_columns(const std::uint64_t* factors, const Records& records, std::size_t column, std::uint8_t* sum) {
  constexpr std::size_t len = 64;
  using Vector [[gnu::vector_size(len), gnu::may_alias]] = Word;
  const std::size_t width = std::min(len, records.record_len - column);
  Vector total{};
  const std::uint8_t* record = records.table + column;
  for (std::size_t i = 0; i < records.count; ++i, record += records.record_len) {
    Vector words{};
    if (width == len) {
      std::memcpy(&words, record, len);
    } else {
      std::memcpy(&words, record, width);
    }
    const Vector factor = Vector{} + static_cast<Word>(factors[i]);
    if constexpr (Bits) {
      total ^= words & factor;
    } else {
      total += words * factor;
    }
  }
  Vector before{};
  std::memcpy(&before, sum + column, width);
  before = Bits ? before ^ total : before + total;
  std::memcpy(sum + column, &before, width);
}

inline void accumulate(Group group, const std::uint8_t* shares, const Records& records, std::uint8_t* sum) {
  constexpr std::size_t most = 128;
  std::uint64_t factors[most];
  for (std::size_t first = 0; first < records.count; first += most) {
    const std::size_t n = std::min(most, records.count - first);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = first + i;
      if (group == Group::gf2) {
        factors[i] = 0 - std::uint64_t{shares[at / 8] >> (at % 8) & 1u};
      } else {
        factors[i] = 0;
        std::memcpy(&factors[i], shares + at * (group == Group::u32 ? 4 : 8), group == Group::u32 ? 4 : 8);
      }
    }
    const Records part{records.table + first * records.record_len, records.record_len, n};
    for (std::size_t column = 0; column < records.record_len; column += 64) {
      if (group == Group::gf2) {
        add_columns<std::uint64_t, true>(factors, part, column, sum);
      } else if (group == Group::u32) {
        add_columns<std::uint32_t, false>(factors, part, column, sum);
      } else {
        add_columns<std::uint64_t, false>(factors, part, column, sum);
      }
    }
  }
}

constexpr const Code& chacha_lanes = code_by_passes<&expand_chacha>;

}  // namespace
}  // namespace warpcipher::prg
