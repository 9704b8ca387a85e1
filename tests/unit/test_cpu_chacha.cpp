// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 and XChaCha20-Poly1305 of the CPU engine, by the code of each instruction set and by libcrypto,
// against the reference: texts that fill groups of blocks and that do not, in place, misaligned, forged, side by side,
// cut into tiles; and pieces of ChaCha20.

#include <gtest/gtest.h>

#include <array>

#include "cipher/poly1305.hpp"
#include "cpu_aead_support.hpp"
#include "engine/cpu/chacha.hpp"
#include "engine/cpu/poly1305_code.hpp"

namespace warpcipher {
namespace cpu {
extern const ChaChaLanes chacha_lanes_defined;  // cpu_chacha_sixteen_blocks_baseline.cpp
}
namespace {

using namespace test;

constexpr std::array<const char*, 2> aeads{"chacha20-poly1305", "xchacha20-poly1305"};

void expect_equal(const RunAead& run, bool computes_tags) {
  std::mt19937 random(8439);
  for (const char* name : aeads) {
    const Algorithm& algorithm = find_algorithm(name);
    for (std::size_t len = 0; len < 2200; len += len < 140 || len % 512 > 440 || len % 512 < 10 ? 1 : 11) {
      expect_aead_right(run, random, algorithm, len, random() % 3 == 0 ? random() % 600 : random() % 40, computes_tags);
    }
    // About the length from which AVX-512 keeps two sums, and whole groups after it.
    for (const std::size_t len : {3007u, 3008u, 3009u, 4031u, 4032u, 4033u, 5056u, 6080u, 9152u}) {
      expect_aead_right(run, random, algorithm, len, random() % 40, computes_tags);
    }
    for (int i = 0; i < 4; ++i) {
      expect_aead_right(run, random, algorithm, random() % 20000, random() % 5000, computes_tags);
    }
  }
}

// The engine's lanes for this processor, and the form of AVX-512 as the manual defines it.
std::vector<const cpu::ChaChaLanes*> all_codes() {
  const auto list = cpu::chacha_lanes_list();
  std::vector<const cpu::ChaChaLanes*> codes(list.begin(), list.end());
  codes.push_back(&cpu::chacha_lanes_defined);
  return codes;
}

class CpuChaCha : public ::testing::TestWithParam<const cpu::ChaChaLanes*> {};

TEST_P(CpuChaCha, EqualsTheReferenceAtEveryShortLength) {
  expect_equal([](const Message& m) { return run_chacha_by_own(*GetParam(), m); }, true);
}

TEST(CpuChaChaChoice, LibcryptoEqualsTheReference) {
  if (!Libcrypto::is_here()) GTEST_SKIP() << "no libcrypto";
  expect_equal(run_chacha_by_libcrypto, false);
}

TEST(CpuChaChaChoice, EqualsTheReference) { expect_equal(run_chacha_message, true); }

// Longer than an update of libcrypto.
TEST(CpuChaChaChoice, TakesALongMessage) {
  std::mt19937 random(3);
  for (const char* name : aeads) {
    const auto run = Libcrypto::is_here() ? run_chacha_by_libcrypto : run_chacha_message;
    expect_aead_right(run, random, find_algorithm(name), (std::size_t{256} << 10) + 77, 5, false);
  }
}

TEST_P(CpuChaCha, PiecesOfAStreamJoin) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    Sample sample(random, find_algorithm("chacha20"), Direction::encrypt, random() % 5000);
    const Message& m = sample.message;
    // The text ends with block 2^32 - 1, the last one.
    if (round % 4 == 0) store_le32(sample.iv.data(), 0 - static_cast<std::uint32_t>((m.in_len + 63) / 64));
    const Outcome want = expected(m);
    const std::size_t cut = m.in_len / 2 / 64 * 64;
    run_chacha_piece_by_own(*GetParam(), m, {m.in, m.out, cut, 0, nullptr, false});
    run_chacha_piece_by_own(*GetParam(), m, {m.in + cut, m.out + cut, m.in_len - cut, cut / 64, nullptr, true});
    EXPECT_TRUE(std::equal(want.text.begin(), want.text.begin() + static_cast<std::ptrdiff_t>(m.in_len), m.out));
  }
}

TEST(CpuChaChaChoice, PiecesOfAStreamJoin) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    Sample sample(random, find_algorithm("chacha20"), Direction::encrypt, random() % 9000);
    const Message& m = sample.message;
    const Outcome want = expected(m);
    const std::size_t cut = m.in_len / 2 / 64 * 64;
    run_chacha_piece(m, {m.in, m.out, cut, 0, nullptr, false});
    run_chacha_piece(m, {m.in + cut, m.out + cut, m.in_len - cut, cut / 64, nullptr, true});
    EXPECT_TRUE(std::equal(want.text.begin(), want.text.begin() + static_cast<std::ptrdiff_t>(m.in_len), m.out));
  }
}

// Messages of all lengths, keys and directions at once, some forged: those beside a forged one stay what they are.
TEST_P(CpuChaCha, MessagesSideBySideEqualTheReference) {
  std::mt19937 random(5);
  for (const char* name : aeads) {
    const Algorithm& algorithm = find_algorithm(name);
    for (const std::size_t count : {1, 2, 7, 40, 130}) {
      std::vector<std::unique_ptr<Sample>> samples;
      std::vector<Bytes> inputs, aads;
      std::vector<const Message*> messages;
      std::vector<Status> statuses(count, Status::ok), want_status(count, Status::ok);
      std::vector<Status*> places;
      std::vector<Outcome> wants;
      for (std::size_t i = 0; i < count; ++i) {
        samples.push_back(std::make_unique<Sample>(random, algorithm, Direction::encrypt, random() % 1300));
        Message& m = samples.back()->message;
        aads.push_back(random_bytes(random, random() % 50));
        m.aad = aads.back().data();
        m.aad_len = aads.back().size();
        Outcome want = expected(m);
        if (random() % 2 == 0) {  // what was encrypted, decrypted: in place
          inputs.push_back(want.text);
          inputs.back().resize(m.in_len);
          samples.back()->tag = want.tag;
          want.text.assign(m.in, m.in + m.in_len);
          m.direction = Direction::decrypt;
          m.in = m.out = inputs.back().data();
          if (random() % 3 == 0) {
            samples.back()->tag[random() % 16] ^= 1;
            want_status[i] = Status::invalid_tag;
            want.text.assign(m.in_len, 0);
          }
        } else {
          inputs.emplace_back();
        }
        wants.push_back(want);
        messages.push_back(&m);
        places.push_back(&statuses[i]);
      }
      run_chacha_messages(*GetParam(), messages, places);
      for (std::size_t i = 0; i < count; ++i) {
        SCOPED_TRACE(std::string(name) + ", message " + std::to_string(i) + " of " + std::to_string(count));
        const Message& m = *messages[i];
        EXPECT_EQ(statuses[i], want_status[i]);
        EXPECT_TRUE(std::equal(m.out, m.out + m.in_len, wants[i].text.begin()));
        if (m.direction == Direction::encrypt) {
          EXPECT_EQ(samples[i]->tag, wants[i].tag);
        }
      }
    }
  }
}

Status run_in_tiles(const cpu::ChaChaLanes& code, const Message& m) {
  constexpr std::size_t tile_len = cpu_tile_units * std::size_t{64};
  const std::uint64_t tiles = std::max<std::uint64_t>(1, (m.in_len + tile_len - 1) / tile_len);
  SplitChaCha split(m, tiles, code);
  Status status = Status::engine_failure;
  for (std::uint64_t i = 0; i < tiles; ++i) {
    const std::uint64_t tile = (i * 5 + 1) % tiles;  // in an order of its own: 5 and the counts below have no factor
    const bool last = split.run_tile(tile, tile_piece(m, tile, tiles, nullptr), status);
    EXPECT_EQ(last, i + 1 == tiles);
  }
  return status;
}

TEST_P(CpuChaCha, TilesJoin) {
  std::mt19937 random(6);
  const auto run = [](const Message& m) { return run_in_tiles(*GetParam(), m); };
  for (const char* name : aeads) {
    for (const std::size_t len : {0u, 1u, 1u << 20, (1u << 20) + 1, (2u << 20) + 16, (3u << 20) - 17}) {
      expect_aead_right(run, random, find_algorithm(name), len, random() % 100);
    }
  }
}

// Values of h about p, with r at its extremes: by the code that hashes between rounds and by limbs.
TEST_P(CpuChaCha, HashesAsLimbsDo) {
  std::mt19937 random(1305);
  for (int round = 0; round < 3000; ++round) {
    Bytes key = random_bytes(random, 32), text = random_bytes(random, random() % (round % 8 == 0 ? 9000 : 130));
    const auto fill = [&](Bytes& bytes, std::size_t from, std::size_t to, int byte) {
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.begin() + static_cast<std::ptrdiff_t>(to),
                static_cast<std::uint8_t>(byte));
    };
    if (round % 3 == 1) fill(key, 0, 16, random() % 2 == 0 ? 0xff : 0);
    if (round % 3 == 2) {
      fill(key, 0, 16, 0);
      key[0] = static_cast<std::uint8_t>(1 + random() % 5);  // h is then a sum of blocks: about multiples of 2^130
    }
    if (round % 2 == 0) fill(text, 0, text.size(), 0xff);
    if (round % 4 == 0 && !text.empty()) text[0] = static_cast<std::uint8_t>(0xf0 + random() % 16);
    if (round % 5 == 0) fill(key, 16, 32, 0xff);
    Bytes out(text.size());
    cpu::ChaChaHash hash{};
    GetParam()->decrypt_part(chacha::State{}, key.data(), {nullptr, 0, text.data(), out.data(), text.size()}, hash);
    std::array<std::uint8_t, 16> by_code{}, by_limbs{};
    cpu::Poly1305Words words{};
    std::memcpy(words.h, hash, sizeof hash);
    words.finish(key.data() + 16, by_code.data());
    poly1305::Hash limbs = poly1305::Hash::start(key.data());
    limbs.add_padded(text.data(), text.size());
    limbs.finish(by_limbs.data());
    ASSERT_EQ(by_code, by_limbs) << "round " << round;
  }
}

// The two sums of a text that is cut in halves, where words are at their extremes.
TEST(CpuPoly1305Words, SumsJoin) {
  std::mt19937 random(130);
  for (int round = 0; round < 4000; ++round) {
    Bytes key = random_bytes(random, 32);
    if (round % 2 == 0) std::fill(key.begin(), key.begin() + 16, static_cast<std::uint8_t>(round % 4 == 0 ? 0xff : 0));
    if (round % 4 == 2) key[0] = static_cast<std::uint8_t>(random() % 6);
    const std::size_t blocks = 1 + random() % 70;
    Bytes text = random_bytes(random, 32 * blocks);
    if (round % 3 == 0) std::fill(text.begin(), text.end(), static_cast<std::uint8_t>(0xff));
    cpu::Poly1305Words whole;
    whole.start(key.data());
    cpu::Poly1305Words first = whole, second = whole, power = whole;
    power.h[0] = 1;
    const std::uint64_t r[3] = {power.r0, power.r1, 0};
    for (std::size_t i = 0; i < blocks; ++i) power.multiply(r);
    whole.add_blocks(text.data(), 2 * blocks);
    first.add_blocks(text.data(), blocks);
    second.add_blocks(text.data() + 16 * blocks, blocks);
    first.join(power.h, second.h);
    EXPECT_LE(first.h[2], 4u);
    std::array<std::uint8_t, 16> at_once{}, joined{};
    whole.finish(key.data() + 16, at_once.data());
    first.finish(key.data() + 16, joined.data());
    ASSERT_EQ(at_once, joined) << "round " << round;
  }
}

// Of any number of blocks, from any counter on.
TEST_P(CpuChaCha, GeneratesKeyStream) {
  std::mt19937 random(20);
  for (std::size_t count = 0; count < 40; ++count) {
    const Bytes key = random_bytes(random, 32), nonce = random_bytes(random, 12);
    const auto number = count % 3 == 0 ? 0 - static_cast<std::uint32_t>(count) : static_cast<std::uint32_t>(random());
    Bytes made(count * 64 + 1, 7), want(count * 64 + 1, 7);
    for (std::size_t i = 0; i < count; ++i) {
      const auto block =
          chacha::key_stream(chacha::make_state(key.data(), number + static_cast<std::uint32_t>(i), nonce.data()));
      chacha::store_words(want.data() + 64 * i, block.words, 16);
    }
    GetParam()->generate(chacha::make_state(key.data(), number, nonce.data()), made.data(), count);
    EXPECT_EQ(made, want) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, CpuChaCha, ::testing::ValuesIn(all_codes()),
                         [](const auto& lanes) { return std::string(lanes.param->name); });

TEST(CpuChaChaChoice, CodesAreChosenByTheProcessor) {
  const auto list = cpu::chacha_lanes_list();
  EXPECT_EQ(list.back(), cpu::Lanes::baseline.chacha);
#if defined(__x86_64__)
  const bool has_bmi2 = __builtin_cpu_supports("bmi2");
  const bool has_avx2 = __builtin_cpu_supports("avx2"), has_avx512 = __builtin_cpu_supports("avx512f");
  EXPECT_EQ(list.size(), 1u + (has_bmi2 && has_avx2) + (has_bmi2 && has_avx512));
#else
  EXPECT_EQ(list.size(), 1u);
#endif
}

}  // namespace
}  // namespace warpcipher
