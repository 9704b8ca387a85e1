// SPDX-License-Identifier: Apache-2.0
// Bitsliced AES of eight counters that share their first rounds, against FIPS 197's text.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cipher/aes_reference.hpp"
#include "cipher/aes_slices.hpp"

namespace warpcipher::aes {
namespace {

constexpr std::uint8_t matrix[4][4] = {{2, 3, 1, 1}, {1, 2, 3, 1}, {1, 1, 2, 3}, {3, 1, 1, 2}};

struct State {
  std::uint8_t bytes[16];

  std::uint32_t column(unsigned c) const {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + 4 * c, 4);
    return word;
  }
};

// A round, but for what the bytes of the state in `left_out` add.
State round_without(const State& state, std::uint32_t left_out, const std::uint8_t* key) {
  State next{};
  for (unsigned c = 0; c < 4; ++c) {
    for (unsigned r = 0; r < 4; ++r) {
      next.bytes[4 * c + r] = key[4 * c + r];
      for (unsigned q = 0; q < 4; ++q) {
        const unsigned source = 4 * ((c + q) % 4) + q;
        if ((left_out >> source & 1) != 0) continue;
        next.bytes[4 * c + r] ^= multiply(matrix[r][q], sbox[state.bytes[source]]);
      }
    }
  }
  return next;
}

TEST(AesSlices, EncryptEightCountersAsTheReferenceDoes) {
  std::mt19937 random(1);
  for (const std::size_t key_len : {16u, 24u, 32u}) {
    std::uint8_t key[32];
    State counter{};
    for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(random());
    for (std::uint8_t& byte : counter.bytes) byte = static_cast<std::uint8_t>(random());
    const reference::Schedule schedule = reference::expand_key(key, key_len);
    State start = counter;
    for (unsigned i = 0; i < 16; ++i) start.bytes[i] ^= schedule.bytes[i];
    const State first = round_without(start, 1u << 15, schedule.bytes + 16);
    const State second = round_without(first, 0xf, schedule.bytes + 32);
    for (unsigned column = 0; column < 32; ++column) {
      std::uint32_t entries[8];
      for (unsigned j = 0; j < 8; ++j) {
        const std::uint8_t y = sbox[(column + 32 * j) ^ schedule.bytes[15]];
        entries[j] = 0;
        for (unsigned r = 0; r < 4; ++r) entries[j] |= std::uint32_t{multiply(matrix[r][3], y)} << (8 * r);
      }
      Slices::slice_entries(entries);
      const std::uint32_t columns[4] = {second.column(0), second.column(1), second.column(2), second.column(3)};
      Slices state = Slices::after_common(entries, first.column(0), columns);
      for (int r = 3; r < schedule.rounds; ++r) {
        state.sub_bytes();
        state.mix_columns(slice_key(schedule.bytes + 16 * r));
      }
      state.sub_bytes();
      std::uint32_t words[4][8];
      state.get_column<0>(words[0]);
      state.get_column<1>(words[1]);
      state.get_column<2>(words[2]);
      state.get_column<3>(words[3]);
      State last{};
      std::memcpy(last.bytes, schedule.bytes + 16 * schedule.rounds, 16);
      for (unsigned j = 0; j < 8; ++j) {
        State block = counter;
        block.bytes[15] = static_cast<std::uint8_t>(column + 32 * j);
        State expected{};
        reference::encrypt_block(schedule, block.bytes, expected.bytes);
        for (unsigned c = 0; c < 4; ++c) ASSERT_EQ(words[c][j] ^ last.column(c), expected.column(c)) << key_len;
      }
    }
  }
}

}  // namespace
}  // namespace warpcipher::aes
