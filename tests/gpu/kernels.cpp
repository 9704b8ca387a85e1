// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <algorithm>
#include <vector>

#include "force.hpp"

namespace conformance {

int test_packed(const Algorithm& algorithm, const Options& options, Stream stream) {
  Tally tally(stream);
  force("counter", "packed");
  for (const std::size_t average : {20, 100, 250, 500, 1000, 3000}) {
    for (const bool one_key : {true, false}) {
      Batch batch;
      const Key& key = random_key(algorithm);
      const Direction direction = random_below(2) == 0 ? Direction::encrypt : Direction::decrypt;
      for (int i = 0; i < (options.quick ? 37 : 500); ++i) {
        Case c =
            random_case(algorithm, direction, random_below(8) == 0 ? random_below(8176) : random_below(2 * average));
        if (algorithm.is_aead()) {
          c.aad_len = random_below(40);
          if (random_below(2) == 0) c.iv = random_iv(algorithm);
        } else if (algorithm.mode.id == Mode::ctr) {
          c.iv = random_bytes(16);
          if (random_below(2) == 0) c.iv[15] = static_cast<std::uint8_t>(0xff - random_below(70));
          if (random_below(4) == 0) std::fill(c.iv.begin(), c.iv.end() - 1, std::uint8_t{0xff});
        }
        if (one_key && (c.iv.empty() || c.iv.size() >= 8)) c.key = &key;
        if (random_below(2) == 0) c.in_shift = c.out_shift = 0;
        batch.add(c);
      }
      tally.run(batch);
    }
  }
  force("counter", nullptr);
  return tally.report(algorithm.name, "messages packed into warps");
}

int test_packed_alike(const Algorithm& algorithm, const Options& options, Stream stream) {
  Tally tally(stream);
  for (const std::size_t units :
       {1, 2, 5, 9, 15, 16, 17, 18, 19, 21, 23, 24, 28, 32, 33, 42, 51, 64, 85, 86, 100, 129, 255, 256}) {
    for (const char* kernel : {"hybrid-packed", "packed"}) {
      force("counter", kernel);
      Batch batch;
      const Key* key = &random_key(algorithm);
      const bool own_keys = kernel[0] == 'p' && random_below(2) == 0;
      const Direction direction = random_below(2) == 0 ? Direction::encrypt : Direction::decrypt;
      const std::size_t count = (options.quick ? 1 : 8) * (units < 24 ? 90 : 40) + random_below(16);
      const std::size_t odd = units % 3 == 0 ? 2 : 60;  // one in this many is like no other
      for (std::size_t i = 0; i < count; ++i) {
        const bool alike = random_below(odd) != 0;
        Case c = random_case(algorithm, direction, alike ? 16 * units : random_below(16 * units + 1));
        if (alike) c.in_shift = c.out_shift = 16 * random_below(2);
        if (algorithm.is_aead()) {
          c.aad_len = random_below(40);
          c.iv = random_bytes(random_below(8) == 0 && algorithm.mode.iv == IvRule::any
                                  ? std::min<std::size_t>(16, algorithm.mode.most_iv_len)
                                  : 12);
          c.bad_tag = c.bad_tag && random_below(8) == 0;
        } else {
          c.iv = random_bytes(16);
          if (random_below(2) == 0) c.iv[15] = static_cast<std::uint8_t>(0xff - random_below(units));
          if (random_below(4) == 0) std::fill(c.iv.begin() + 12 * random_below(2), c.iv.end() - 1, std::uint8_t{0xff});
        }
        if (own_keys) key = &random_key(algorithm);
        c.key = key;
        batch.add(c);
      }
      tally.run(batch);
    }
  }
  force("counter", nullptr);
  return tally.report(algorithm.name, "messages of one length packed into warps");
}

int test_serial(const Algorithm& algorithm, const Options& options, Stream stream) {
  Tally tally(stream);
  for (const std::size_t longest : {140, 1100}) {
    Batch batch;
    for (int i = 0; i < (options.quick ? 75 : 2000); ++i) {
      const bool edge = random_below(2) == 0;
      Case c = random_case(algorithm, Direction::encrypt,
                           edge ? 128 * random_below(longest / 128) + random_below(3) : random_below(longest));
      if (random_below(4) != 0) c.in_shift = c.out_shift = 16 * random_below(2);
      batch.add(c);
    }
    tally.run(batch);
  }
  return tally.report(algorithm.name, "messages, a lane each");
}

int test_hybrid_warps(const Algorithm& algorithm, const Options& options, Stream stream) {
  constexpr std::size_t tile = 256 * 16;
  const bool counts = algorithm.mode.id == Mode::ctr || algorithm.is_aead();
  Tally tally(stream);
  force("counter", "hybrid");
  force("text", "hybrid");
  for (const std::size_t tiles : {3, 7, 24, options.quick ? 40 : 5000}) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      if (algorithm.mode.id == Mode::ctr && direction == Direction::decrypt) continue;  // the same
      if (!algorithm.parallel(direction)) continue;
      const std::uint64_t len =
          std::min<std::uint64_t>(tiles * tile, algorithm.mode.most_text_len) - random_below(tile);
      Case c = random_case(algorithm, direction, len);
      c.in_shift = 16 * random_below(8);
      c.out_shift = 16 * random_below(8);
      c.in_place = tiles % 2 == 0;
      c.bad_tag = false;
      if (counts) c.iv = random_bytes(algorithm.is_aead() ? 12 : 16);
      if (algorithm.mode.id == Mode::ctr) {
        std::fill(c.iv.begin() + (tiles == 24 ? 0 : 12), c.iv.begin() + 14, std::uint8_t{0xff});
      }
      c.key = &random_key(algorithm);
      tally.run_alone(c);
      if (algorithm.is_aead() && direction == Direction::decrypt && tiles == 7) {
        c.bad_tag = true;
        tally.run_alone(c);
      }
    }
  }
  for (const bool own_keys : {false, true}) {
    if (!counts && (own_keys || algorithm.mode.id != Mode::xts)) continue;
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      Batch batch;
      const Key* key = &random_key(algorithm);
      for (int i = 0; i < (options.quick ? 20 : 500); ++i) {
        Case c = random_case(algorithm, direction, i % 3 != 0 ? tile : tile * random_below(9) + random_below(tile));
        if (i % 4 != 0) c.in_shift = c.out_shift = 0;
        if (counts) c.iv = random_bytes(algorithm.is_aead() ? 12 : 16);
        if (own_keys && random_below(4) != 0) key = &random_key(algorithm);
        c.key = key;
        batch.add(c);
      }
      tally.run(batch);
    }
  }
  force("text", nullptr);
  force("counter", nullptr);
  return tally.report(algorithm.name, "messages by two kinds of warps");
}

int test_ghash_segments(const Algorithm& algorithm, const Options& options, Stream stream) {
  constexpr std::size_t segment = 512 * 16;
  constexpr std::size_t half = segment / 2;
  Tally tally(stream);
  for (const bool one_key : {true, false}) {
    const Key& key = random_key(algorithm);
    const Direction direction = random_below(2) == 0 ? Direction::encrypt : Direction::decrypt;
    Batch batch;
    for (const std::size_t segments : {0, 1, options.quick ? 2 : 9}) {
      for (const std::size_t over : {std::size_t{16}, 1 + random_below(half), half, half + 1, segment}) {
        Case c = random_case(algorithm, direction, segments * segment + over);
        c.aad_len = c.len < 64 || random_below(2) == 0 ? 0 : random_below(40);
        if (random_below(2) == 0) c.len -= (c.aad_len + 15) / 16 * 16;  // so that AAD makes it whole
        if (random_below(4) != 0) c.in_shift = c.out_shift = 16 * random_below(2);
        c.iv = random_bytes(12);
        c.key = one_key ? &key : &random_key(algorithm);
        batch.add(c);
      }
    }
    tally.run(batch);
  }
  return tally.report(algorithm.name, "messages at the edges of GHASH's segments");
}

int test_many_keys(const Algorithm& algorithm, const Options& options, Stream stream) {
  Tally tally(stream);
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    for (const bool shared : {false, true}) {
      Batch batch;
      std::vector<const Key*> few;
      for (int i = 0; i < 5; ++i) few.push_back(&random_key(algorithm));
      for (int i = 0; i < (options.quick ? 70 : 1000); ++i) {
        Case c = random_case(algorithm, direction, random_below(200));
        if (algorithm.is_aead()) c.aad_len = random_below(20);
        c.key = shared ? few[random_below(few.size())] : &random_key(algorithm);
        batch.add(c);
      }
      tally.run(batch);
    }
  }
  return tally.report(algorithm.name, "messages with many keys");
}

}  // namespace conformance
