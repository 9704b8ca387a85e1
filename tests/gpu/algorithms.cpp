// SPDX-License-Identifier: Apache-2.0
#include "algorithms.hpp"

#include <algorithm>
#include <vector>

#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"
#include "engine/device_engine.hpp"

namespace conformance {
namespace {

// An IV whose counter wraps inside the text: past its low 8, 32, 64 or 128 bits.
std::vector<std::uint8_t> wrapping_counter(std::size_t ones) {
  std::vector<std::uint8_t> counter = random_bytes(16);
  std::fill(counter.end() - static_cast<std::ptrdiff_t>(ones), counter.end(), std::uint8_t{0xff});
  counter[15] = static_cast<std::uint8_t>(0xff - random_below(8));
  return counter;
}

// The 16-byte IV that gives this J0 under the key: J0 = (IV H + len) H, solved for IV.
std::vector<std::uint8_t> iv_for(const Key& key, const std::vector<std::uint8_t>& counter) {
  std::uint8_t block[16] = {};
  const aes::Schedule schedule = aes::expand_key(key.bytes(), key.size());
  aes::encrypt_block(schedule, block, block);
  gf128::Element inverse = gf128::gcm_one;  // H^(2^128 - 2)
  gf128::Element power = gf128::load(block);
  for (int i = 1; i < 128; ++i) {
    power = gf128::gcm_multiply(power, power);
    inverse = gf128::gcm_multiply(inverse, power);
  }
  const gf128::Element product = gf128::gcm_multiply(gf128::load(counter.data()), inverse);
  std::vector<std::uint8_t> iv(16);
  gf128::store(iv.data(), gf128::gcm_multiply(gf128::add(product, {0, 128}), inverse));
  return iv;
}

std::vector<std::size_t> lengths(const Algorithm& algorithm, Direction direction, bool quick) {
  std::vector<std::size_t> all{0,  1,   7,   8,   9,    15,   16,   17,   31,   32,
                               33, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097};
  const bool slow = algorithm.mode.id == Mode::cfb8;
  if (quick) {
    all.push_back(slow ? 1000 : 8192 + random_below(4096));
    return all;
  }
  if (!slow) all.insert(all.end(), {65535, 65536, 65537, 262144, (1 << 20) - 1, 1 << 20});
  for (int i = 0; i < 12; ++i) {
    all.push_back(
        random_below(slow || !algorithm.parallel(direction) ? 20000 : std::size_t{1} << (4 + random_below(17))));
  }
  return all;
}

// CTR where the GPU cuts a message: counters that begin anywhere in a tile, texts that end around its edges, and one so
// long that warps have several tiles, with a carry through 2^32 (in GCM nothing else is different).
void test_counter_tiles(const Algorithm& algorithm, const Options& options, Tally& tally) {
  constexpr std::size_t tile = 256;
  Batch together;
  for (const std::size_t last : {0, 1, 2, 31, 32, 63, 127, 128, 160, 223, 254, 255}) {
    for (const std::size_t edge : {tile - last, 2 * tile - last}) {
      Case c = random_case(algorithm, Direction::encrypt, 0);
      const std::size_t around = 16 * edge + random_below(16 * 140);
      c.len = around < 16 * 70 ? random_below(16 * 70) : around - 16 * 70;
      c.iv = random_bytes(16);
      c.iv[15] = static_cast<std::uint8_t>(last);
      if (random_below(2) == 0) std::fill(c.iv.begin() + 4, c.iv.end() - 1, std::uint8_t{0xff});
      if (random_below(4) != 0) c.in_shift = c.out_shift = 16 * random_below(2);
      c.key = &random_key(algorithm);
      if (last % 32 == 31 && sampled(options)) tally.run_alone(c);
      together.add(c);
    }
  }
  tally.run(together);
  if (algorithm.key_len() != 16) return;
  Case c = random_case(algorithm, Direction::decrypt, 300 * tile * 16 + 5);
  c.in_shift = c.out_shift = 0;
  c.iv = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xff, 0xff, 0x80, 0x42};
  tally.run_alone(c);
}

}  // namespace

int test_algorithm(const Algorithm& algorithm, const Options& options, Stream stream, bool thin) {
  Tally tally(stream);
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    const std::vector<std::size_t> lens = lengths(algorithm, direction, options.quick);
    std::size_t turn = 0;
    for (const std::size_t len : lens) {  // alone
      ++turn;
      for (const bool in_place : {false, true}) {
        if (thin && in_place != (turn % 2 == 0)) continue;
        if (!sampled(options)) continue;
        Case c = random_case(algorithm, direction, len);
        c.in_place = in_place;
        tally.run_alone(c);
      }
    }
    Batch together;  // several keys, some used twice
    const Key* last = nullptr;
    for (const std::size_t len : lens) {
      Case c = random_case(algorithm, direction, len);
      if (last != nullptr && random_below(2) == 0) c.key = last;
      if (c.key == nullptr) c.key = last = &random_key(algorithm);
      together.add(c);
    }
    tally.run(together);
    Batch one_key;
    const Key& key = random_key(algorithm);
    for (const std::size_t len : {1000, 300, 20}) {
      Case c = random_case(algorithm, direction, len);
      c.key = &key;
      one_key.add(c);
    }
    tally.run(one_key);
    if (algorithm.mode.id == Mode::ctr || algorithm.mode.id == Mode::gcm) {
      Batch wrapping;
      for (const std::size_t ones : {1, 2, 4, 8, 16}) {
        for (const std::size_t len : {300, 5000, 9000}) {
          Case c = random_case(algorithm, direction, len);
          c.key = &random_key(algorithm);
          c.iv = wrapping_counter(ones);
          if (algorithm.mode.id == Mode::gcm) c.iv = iv_for(*c.key, c.iv);
          if (!thin && sampled(options)) tally.run_alone(c);
          wrapping.add(c);
        }
      }
      tally.run(wrapping);
    }
  }
  if (algorithm.mode.id == Mode::ctr) test_counter_tiles(algorithm, options, tally);
  return tally.report(algorithm.name, "cases");
}

int test_mixed(const Options& options, Stream stream) {
  Batch batch;
  for (int i = 0; i < (options.quick ? 120 : 2000); ++i) {
    const Algorithm& algorithm = algorithms()[random_below(algorithms().size())];
    if (!cuda_engine().offers(algorithm)) continue;
    const Direction direction = random_below(2) == 0 ? Direction::encrypt : Direction::decrypt;
    batch.add(random_case(algorithm, direction, random_below(options.quick ? 600 : 6000)));
  }
  Tally tally(stream);
  tally.run(batch);
  // Chains on streams of their own, next to work that ends before them.
  for (int round = 0; round < 4; ++round) {
    Batch saved_ciphertext;
    for (const char* name : {"aes-128-cbc", "aes-256-ofb", "des-cfb", "aes-192-cfb8", "des-ede3-cbc", "aes-128-ctr"}) {
      saved_ciphertext.add(random_case(find_algorithm(name), Direction::encrypt, random_below(600)));
    }
    tally.run(saved_ciphertext);
  }
  return tally.report("mixed", "cases");
}

}  // namespace conformance
