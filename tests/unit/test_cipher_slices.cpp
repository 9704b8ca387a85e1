// SPDX-License-Identifier: Apache-2.0
// Bitsliced AES of eight blocks, both ways, and of eight counters that share their first rounds, against FIPS 197's
// text.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

// The round keys of the equivalent inverse cipher (section 5.3.5), as many as there are of `schedule`.
std::array<State, 15> inverse_keys(const reference::Schedule& schedule) {
  std::array<State, 15> keys{};
  for (int r = 0; r <= schedule.rounds; ++r) {
    std::uint8_t(&key)[16] = keys[static_cast<std::size_t>(r)].bytes;
    std::memcpy(key, schedule.bytes + 16 * (schedule.rounds - r), 16);
    if (r != 0 && r != schedule.rounds) reference::detail::mix_columns(key, {14, 11, 13, 9});
  }
  return keys;
}

// Runs eight blocks through the cipher or its inverse; keys in the order they are added.
template <bool Inverse>
void run_slices(const std::array<State, 15>& keys, int rounds, State (&blocks)[8]) {
  std::uint32_t words[4][8];
  for (unsigned j = 0; j < 8; ++j) {
    for (unsigned c = 0; c < 4; ++c) words[c][j] = blocks[j].column(c) ^ keys[0].column(c);
  }
  Slices state = Slices::of_columns(words);
  for (int r = 1; r < rounds; ++r) {
    state.sub_bytes<Inverse>();
    state.mix_columns<Inverse>(slice_key(keys[static_cast<std::size_t>(r)].bytes));
  }
  state.sub_bytes<Inverse>();
  state.get_column<0, Inverse>(words[0]);
  state.get_column<1, Inverse>(words[1]);
  state.get_column<2, Inverse>(words[2]);
  state.get_column<3, Inverse>(words[3]);
  for (unsigned j = 0; j < 8; ++j) {
    for (unsigned c = 0; c < 4; ++c) {
      const std::uint32_t word = words[c][j] ^ keys[static_cast<std::size_t>(rounds)].column(c);
      std::memcpy(blocks[j].bytes + 4 * c, &word, 4);
    }
  }
}

TEST(AesSlices, MasksOneByOneAreThoseOfTheWholeKey) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    State key{};
    for (std::uint8_t& byte : key.bytes) byte = static_cast<std::uint8_t>(random());
    const SlicedKey sliced = slice_key(key.bytes);
    std::uint32_t rows[4] = {};
    for (unsigned r = 0; r < 4; ++r) {
      for (unsigned c = 0; c < 4; ++c) rows[r] |= std::uint32_t{key.bytes[4 * c + r]} << (8 * c);
    }
    for (unsigned r = 0; r < 4; ++r) {
      for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(make_mask(rows[r], rows[r ^ 2], mask_bits(i)), sliced.rows[r][i]);
    }
  }
}

TEST(AesSlices, RunEightBlocksAsTheReferenceDoes) {
  std::mt19937 random(2);
  for (const std::size_t key_len : {16, 24, 32}) {
    std::uint8_t key[32];
    for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(random());
    const reference::Schedule schedule = reference::expand_key(key, key_len);
    std::array<State, 15> keys{};
    for (std::size_t r = 0; r < keys.size(); ++r) std::memcpy(keys[r].bytes, schedule.bytes + 16 * r, 16);
    State plaintexts[8];
    State ciphertexts[8];
    for (unsigned j = 0; j < 8; ++j) {
      for (std::uint8_t& byte : plaintexts[j].bytes) byte = static_cast<std::uint8_t>(random());
      reference::encrypt_block(schedule, plaintexts[j].bytes, ciphertexts[j].bytes);
    }
    State blocks[8];
    std::copy_n(plaintexts, 8, blocks);
    run_slices<false>(keys, schedule.rounds, blocks);
    EXPECT_EQ(std::memcmp(blocks, ciphertexts, sizeof blocks), 0) << key_len;
    run_slices<true>(inverse_keys(schedule), schedule.rounds, blocks);
    EXPECT_EQ(std::memcmp(blocks, plaintexts, sizeof blocks), 0) << key_len;
  }
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
