// SPDX-License-Identifier: Apache-2.0
#include "columns.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "columnar_batch.hpp"
#include "engine/cuda/execution/launch_plan.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "force.hpp"
#include "sectors.hpp"

namespace {

using namespace warpcipher;
using conformance::force;

// Each change makes a right batch wrong: the GPU must see it, and the host say what it is.
int test_refusals(const Algorithm& algorithm, std::size_t longest, Stream stream) {
  struct Wrong {
    std::string text;
    void (*change)(ColumnarBatch&);
    bool in_place = false;
    bool padded = false;  // and decrypted
  };
  static constexpr std::size_t at = 33;
  std::vector<Wrong> all{
      {"message 33: key index", [](ColumnarBatch& b) { b.key_index[at] = 7; }},
      {"message 33: in range", [](ColumnarBatch& b) { b.in_offsets[at] = std::uint64_t{0} - 5; }},
      {"message 33: in range", [](ColumnarBatch& b) { b.in_lengths[at] = std::uint64_t{1} << 63; }},
      {"message 33: out range", [](ColumnarBatch& b) { b.out_offsets[at] = std::uint64_t{1} << 40; }},
      {"message 33 writes where message 32", [](ColumnarBatch& b) { b.out_offsets[at] = b.out_offsets[at - 1]; }},
      {"reads where message", [](ColumnarBatch& b) { b.in_offsets[at] = b.in_offsets[at + 3]; }, true},
      {"in and out overlap", [](ColumnarBatch& b) { b.in_offsets[at] += 1; }, true},
  };
  if (algorithm.mode.whole_blocks) {
    all.push_back({"message 33: " + std::string(algorithm.name) + " without padding takes a multiple",
                   [](ColumnarBatch& b) { b.in_lengths[at] = 17; }});
  }
  if (algorithm.takes_padding()) {
    all.push_back({"message 33: " + std::string(algorithm.name) + " with PKCS#7 padding decrypts at least",
                   [](ColumnarBatch& b) { b.in_lengths[at] = 0; }, false, true});
  }
  if (algorithm.mode.id == Mode::xts) {
    all.push_back({"takes a data unit of 16", [](ColumnarBatch& b) { b.in_lengths[at] = 15; }});
    all.push_back({"the two halves of the key are equal", [](ColumnarBatch& b) {
                     const std::size_t half = b.key_bytes.size() / 4;  // of two keys
                     std::copy_n(b.key_bytes.begin(), half, b.key_bytes.begin() + static_cast<std::ptrdiff_t>(half));
                   }});
  }
  if (algorithm.mode.id == Mode::stream) {
    all.push_back({"has a counter of 32 bits that does not wrap", [](ColumnarBatch& b) {
                     std::fill_n(b.ivs.begin() + 16 * at, 4, std::uint8_t{0xff});
                     b.in_lengths[at] = 65;
                   }});
  }
  if (algorithm.is_aead() && !algorithm.mode.nonces_may_repeat) {
    all.push_back({"messages 3 and 33 encrypt", [](ColumnarBatch& b) {
                     b.key_index[at] = b.key_index[3];
                     b.repeat_iv(3, at);
                   }});
    all.push_back({"messages 3 and 33 encrypt", [](ColumnarBatch& b) {  // other keys by number, of the same bytes
                     b.key_index[3] = 0;
                     b.key_index[at] = 1;
                     b.repeat_iv(3, at);
                     std::copy_n(b.key_bytes.begin(), b.key_bytes.size() / 2,
                                 b.key_bytes.begin() + static_cast<std::ptrdiff_t>(b.key_bytes.size() / 2));
                   }});
  }
  if (algorithm.is_aead()) {
    all.push_back({"message 33: aad range", [](ColumnarBatch& b) { b.aad_offsets[at] = 1 << 20; }});
  }
  int failures = 0;
  for (const Wrong& wrong : all) {
    for (const bool on_device : {false, true}) {
      Shape shape{wrong.padded ? Direction::decrypt : Direction::encrypt,
                  40,
                  longest,
                  2,
                  true,
                  on_device,
                  true,
                  wrong.in_place,
                  true};
      shape.shortest = longest > 100 ? longest - 100 : 16;
      shape.pads = wrong.padded;
      ColumnarBatch batch(algorithm, shape);
      wrong.change(batch);
      failures += test_refusal(batch, wrong.text, stream);
    }
  }
  return failures;
}

// Batches of one key of which one message is wrong.
int test_refusals_of_one_key(const Algorithm& algorithm, Shape shape, Stream stream) {
  static constexpr std::size_t at = 7;
  shape.offsets = true;
  shape.gaps = false;
  int failures = 0;
  const auto refuse = [&](const std::string& expected, void (*change)(ColumnarBatch&)) {
    ColumnarBatch batch(algorithm, shape);
    change(batch);
    failures += test_refusal(batch, expected, stream);
  };
  refuse("message 7: in range", [](ColumnarBatch& b) { b.in_offsets[at] = std::uint64_t{1} << 40; });
  if (algorithm.is_aead() && !algorithm.mode.nonces_may_repeat && shape.direction == Direction::encrypt) {
    refuse("messages 3 and 7 encrypt", [](ColumnarBatch& b) { b.repeat_iv(3, at); });
  }
  return failures;
}

struct Started {
  const char* kernel;  // nullptr: the one that suits them
  std::size_t shortest, longest;
  std::size_t slack = 64;
};

constexpr Started started_counters[] = {{"packed", 320, 320},           {"packed", 0, 15000},
                                        {"hybrid-packed", 315, 315},    {"hybrid-packed", 320, 320},
                                        {"hybrid-packed", 320, 320, 0}, {"hybrid-packed", 4096, 4096, 0},
                                        {"hybrid-packed", 0, 900},      {"hybrid-packed", 0, 15000},
                                        {"hybrid", 8192, 8192},         {"hybrid", 0, 9000}};

// Longer than lanes take, and buffers that make messages seem so.
constexpr Started started_chacha[] = {
    {nullptr, 320, 320},        {nullptr, 0, 15000},     {"lanes", 66000, 80000}, {"lanes", 0, 80000},
    {nullptr, 0, 300, 2000000}, {nullptr, 20000, 40000}, {"chunks", 0, 300},      {nullptr, 0, 0}};

// Speculative launches (engine/cuda/inputs/speculation.hpp), where the assumption holds and where not.
int test_speculation(const Algorithm& algorithm, Stream stream) {
  const bool is_chacha = !is_aes(algorithm.cipher.id);
  const char* const variable = is_chacha ? "poly1305" : "counter";
  int failures = 0;
  for (const Started& c : is_chacha ? std::span<const Started>(started_chacha) : std::span(started_counters)) {
    force(variable, c.kernel);
    for (const std::size_t keys : {1, 3}) {
      for (const bool in_place : {false, true}) {  // in place, text that is run twice is not what it should be
        Shape shape;
        shape.direction = is_chacha && random_below(2) == 0 ? Direction::decrypt : Direction::encrypt;
        shape.count = 20;
        shape.shortest = c.shortest;
        shape.longest = c.longest;
        shape.keys = keys;
        shape.device_columns = keys == 3;
        shape.key_bytes = keys == 3;
        shape.in_place = in_place;
        shape.slack = c.slack;
        failures += test_shape(algorithm, shape, stream);
        if (keys == 1) failures += test_refusals_of_one_key(algorithm, shape, stream);
        if (shape.direction == Direction::encrypt) continue;
        shape.direction = Direction::encrypt;
        if (keys == 1) failures += test_refusals_of_one_key(algorithm, shape, stream);
      }
    }
    if (c.shortest != 0) failures += test_refusals(algorithm, c.longest, stream);
  }
  force(variable, nullptr);
  return failures;
}

// Many long and short messages: tiles lack their ends, and short ones are hashed apart. As many as that takes, on the
// emulated GPU and on a real one.
int test_mixed_lengths(const Algorithm& algorithm, bool quick, Stream stream) {
  struct Case {
    const char* kernel;
    std::size_t shortest, longest, keys;
    bool one_length;
    std::size_t every_other;  // second message has at most so many bytes; 0: all are alike, and start speculatively
  };
  const std::size_t tile = 4096;
  int failures = 0;
  for (const Case& c : {Case{"hybrid", tile - 40, tile + 40, 1, false, 1100},
                        {"hybrid", 2 * tile, 2 * tile, 1, true, 0},
                        {"hybrid", 2 * tile, 2 * tile, 3, true, 0},
                        {"tiles", 2 * tile, 2 * tile, 1, true, 40},
                        {"hybrid", 2 * tile - 32, 2 * tile - 32, 3, true, 40},
                        {"tiles", tile - 1100, 2 * tile + 1100, 3, false, 1100},
                        {"hybrid", 15000, 16800, 1, false, 40},
                        {nullptr, 0, 900, 1, false, 1100}}) {
    force("counter", c.kernel);
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      if (direction == Direction::decrypt && !algorithm.is_aead()) continue;  // the same
      for (const bool offsets : {false, true}) {
        if (quick && random_below(2) == 0) continue;
        Shape shape;
        shape.direction = direction;
        shape.count = quick ? 400 : 17000;
        shape.shortest = c.shortest;
        shape.longest = c.longest;
        shape.keys = c.keys;
        shape.one_length = c.one_length;
        shape.every_other = c.every_other;
        shape.offsets = offsets && c.every_other != 0;
        shape.in_place = shape.offsets && direction == Direction::decrypt;
        shape.aad_ranges = algorithm.is_aead();
        shape.device_columns = c.keys == 1;
        failures += test_shape(algorithm, shape, stream);
      }
    }
  }
  force("counter", nullptr);
  return failures;
}

std::optional<cuda::LaunchPlan> last_plan;  // of the launches that began

// "tables=128 KiB counter=tiles "
std::string chosen_by(const std::vector<Decision>& decisions) {
  std::string text;
  for (const Decision& decision : decisions) {
    for (const Candidate& candidate : decision.candidates) {
      if (candidate.is_chosen) text += std::string(decision.subject) + "=" + std::string(candidate.name) + " ";
    }
  }
  return text;
}

// explain() names the kernels of a batch that run: one message by itself, and columns.
int test_explanation(const Algorithm& algorithm, Direction direction, Stream stream) {
  int failures = 0;
  const cuda::Conditions now = cuda::conditions_of(cuda::find_device(0));
  cuda::plan_observer = [](const cuda::BatchFacts&, const cuda::LaunchPlan& plan) { last_plan = plan; };
  for (const std::size_t count : {1, 2, 300}) {
    for (const std::size_t size : {16, 512, 12288}) {
      for (const std::size_t keys : {1, 3}) {
        if (keys > count || count * size > (1 << 20)) continue;
        Shape shape;
        shape.direction = direction;
        shape.count = count;
        shape.shortest = shape.longest = size;
        shape.keys = keys;
        shape.slack = 0;
        shape.messages = count == 1;
        ColumnarBatch batch(algorithm, shape);
        batch.aad.clear();
        last_plan.reset();
        failures += test_batch(batch, algorithm, shape, stream);
        const std::string ran = last_plan ? chosen_by(cuda::to_decisions(now, *last_plan)) : "nothing";
        std::string said = chosen_by(cuda::explain(now, {algorithm, direction, count, size, keys}));
        // Data units that follow each other have a plan of their own, before that of a batch.
        const std::string refused = "data units=batch ";
        if (const std::size_t place = said.find(refused); place != std::string::npos) said.erase(place, refused.size());
        if (ran == said) continue;
        std::printf("%s %s: %s ran, but explain says %s\n", std::string(algorithm.name).c_str(), shape.text().c_str(),
                    ran.c_str(), said.c_str());
        ++failures;
      }
    }
  }
  cuda::plan_observer = nullptr;
  return failures;
}

int test_algorithm(const Algorithm& algorithm, bool quick, Stream stream) {
  int failures = 0;
  std::size_t cases = 0;
  force("columns", "device");
  const bool counts = algorithm.mode.id == Mode::ctr || algorithm.is_aead();
  // The same kernels as another algorithm's, but for rounds or the nonce.
  const bool thin = quick && (algorithm.key_len() == 24 || algorithm.cipher.id == CipherId::xchacha20);
  const std::size_t variants = !quick ? 48 : counts ? 8 : 4;
  const std::size_t lengths = algorithm.mode.id == Mode::cfb8 ? 3 : quick && !counts ? 6 : 9;
  for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
    for (std::size_t variant = 0; variant < variants; ++variant) {
      Shape shape;
      shape.direction = direction;
      // Enough messages that serial modes take the kernel of many warps, on the emulated GPU and on a real one.
      const std::size_t many = algorithm.parallel(direction) ? 1100 : quick ? 1300 : 60000;
      const std::size_t longest = std::size_t{16} << random_below(lengths);
      shape.count = variant == 3 ? many : 1 + random_below(quick ? 90 : 3000);
      shape.longest = variant != 3 ? longest : algorithm.name == "aes-128-cbc" ? 160 : 20;
      shape.keys = variant % 2 == 0 ? 1 : 2 + random_below(40);
      shape.key_bytes = variant / 2 % 2 != 0;
      shape.device_columns = counts ? variant / 4 % 2 != 0 : random_below(2) == 0;
      shape.offsets = random_below(2) == 0;
      shape.in_place = random_below(3) == 0;
      shape.aad_ranges = random_below(2) == 0;
      shape.tag_len = std::size_t{12} + random_below(5);
      if (!algorithm.takes_tag_len(shape.tag_len)) shape.tag_len = full_tag_len;
      shape.pads = algorithm.takes_padding() && random_below(2) == 0;
      shape.one_length = random_below(4) == 0;
      failures += test_shape(algorithm, shape, stream);
      shape.messages = true;
      shape.key_bytes = shape.device_columns = false;
      failures += test_shape(algorithm, shape, stream);
      cases += 2;
    }
    if (!counts || thin || (quick && algorithm.key_len() != 32)) continue;
    // Long messages: chunks of GHASH in each of its forms, and on a large GPU rows of short ones.
    struct Long {
      std::size_t count, shortest, longest, keys;
    };
    std::vector<Long> all{{3, 8000, 30000, 1}, {2, 60000, 80000, 1}, {2, 60000, 80000, 2}, {400, 0, 60, 1}};
    if (!quick) all.insert(all.end(), {{1, 600000, 700000, 1}, {2, 400000, 600000, 2}, {18000, 0, 300, 1}});
    if (!quick && !algorithm.is_aead()) all.push_back({150000, 0, 20, 1});  // more sums than a warp adds up
    if (algorithm.mode.id == Mode::poly1305) {
      // Warps that take from 2 to 32 messages each, with a lane for each of them, or more.
      const std::size_t lanes = quick ? 2400 : 110000;
      all.insert(all.end(), {{lanes, 0, 40, 1}, {lanes, 0, quick ? 80u : 700u, 3}, {lanes / 4, 100, 260, 1}});
      all.insert(all.end(), {{lanes / 12, 0, 900, 2}, {lanes / 10, 300, 310, 1}});
      if (!quick) all.insert(all.end(), {{lanes, 1000, 1040, 3}, {7000, 0, 9000, 3}});
    }
    for (const Long& l : all) {
      Shape shape;
      shape.direction = direction;
      shape.count = l.count;
      shape.shortest = l.shortest;
      shape.longest = l.longest;
      shape.keys = l.keys;
      shape.offsets = random_below(2) == 0;
      shape.in_place = random_below(2) == 0;
      shape.aad_ranges = random_below(2) == 0;
      failures += test_shape(algorithm, shape, stream);
      ++cases;
    }
  }
  if (algorithm.mode.id == Mode::xts) failures += test_sectors(algorithm, quick, stream, cases);
  if (algorithm.takes_padding()) {  // as messages, whose padding is taken off the same way
    force("columns", "host");
    Shape shape{Direction::decrypt, 200, 70, 3};
    shape.pads = shape.offsets = true;
    failures += test_shape(algorithm, shape, stream);
    ++cases;
    force("columns", "device");
  }
  if (counts || algorithm.mode.id == Mode::cbc || algorithm.mode.id == Mode::xts || algorithm.mode.id == Mode::stream)
    failures += test_refusals(algorithm, 100, stream);
  // The kernels for keys of 10 rounds are those of CTR, which has them tested.
  const bool once = !thin && !(quick && algorithm.is_aead() && algorithm.key_len() != 32);
  if (counts && once) failures += test_speculation(algorithm, stream);
  const bool has_ends = algorithm.mode.id == Mode::ctr || algorithm.mode.id == Mode::gcm;
  if (has_ends && once) failures += test_mixed_lengths(algorithm, quick, stream);
  failures += test_explanation(algorithm, Direction::encrypt, stream);
  if (!algorithm.is_aead()) failures += test_explanation(algorithm, Direction::decrypt, stream);
  force("columns", nullptr);
  std::printf("%-16s %4zu columnar batches %s\n", std::string(algorithm.name).c_str(), cases,
              failures == 0 ? "ok" : "FAILED");
  std::fflush(stdout);
  return failures;
}

}  // namespace

int test_columns(bool quick, const std::string& only, const std::function<bool()>& is_mine, Stream stream) {
  int failures = 0;
  for (const char* name :
       {"aes-128-ctr",       "aes-128-gcm",        "aes-192-gcm",   "aes-256-gcm", "aes-128-gcm-siv", "aes-256-gcm-siv",
        "aes-256-ecb",       "aes-128-cbc",        "aes-192-cfb",   "aes-256-ofb", "aes-128-cfb8",    "chacha20",
        "chacha20-poly1305", "xchacha20-poly1305", "aes-128-xts",   "aes-256-xts", "des-ecb",         "des-cfb",
        "des-ede2-cbc",      "des-ede3-cbc",       "des-ede3-cfb8", "des-ede3-ofb"}) {
    if ((!only.empty() && only != name) || !is_mine()) continue;
    failures += test_algorithm(find_algorithm(name), quick, stream);
  }
  return failures;
}
