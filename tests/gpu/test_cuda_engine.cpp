// SPDX-License-Identifier: Apache-2.0
// Conformance of the CUDA engine: every algorithm and direction against the oracle (oracle.hpp), over lengths at the
// edges of blocks and tiles, alignments, in place or not, alone or in batches, with both forms of the lane tables. A
// plain program, because the machines with GPUs have nothing but the toolkit:
//
//   test_cuda_engine [--quick] [--sample N] [--no-large] [--only ALGORITHM] [--host-data | --columns] [--part I/N]
//   [--seed N]
//
// --quick keeps texts small, for compute-sanitizer and the emulated GPU; --sample runs alone only each Nth of the texts
// that get a launch of their own (the launches of many messages run whole), since compute-sanitizer is slow by launch.
// Prints a line for each algorithm; exits 1 when anything differs. --host-data runs the tests of host data
// alone, --columns those of columnar batches.
#include <cuda_runtime_api.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "batch/plan.hpp"
#include "cipher/aes.hpp"
#include "cipher/gf128.hpp"
#include "columns.hpp"
#include "core/error.hpp"
#include "engine/cuda/engine.hpp"
#include "host_data.hpp"
#include "large.hpp"
#include "mode/algorithm.hpp"
#include "oracle.hpp"

namespace {

using namespace warpcipher;

std::mt19937_64 generator;

std::size_t random_below(std::size_t n) { return n == 0 ? 0 : generator() % n; }

std::vector<std::uint8_t> random_bytes(std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

struct Case {
  const Algorithm* algorithm = nullptr;
  Direction direction = Direction::encrypt;
  Padding padding = Padding::none;
  std::size_t len = 0;
  std::size_t in_shift = 0;   // from a multiple of 256
  std::size_t out_shift = 0;  // ignored in place
  bool in_place = false;
  bool bad_tag = false;
  std::size_t aad_len = 0;
  std::size_t tag_len = 16;
  std::vector<std::uint8_t> iv;  // empty: random
  const Key* key = nullptr;      // nullptr: random

  std::string text() const {
    return std::string(algorithm->name) + (direction == Direction::encrypt ? " encrypt" : " decrypt") + " len " +
           std::to_string(len) + (padding == Padding::pkcs7 ? " pkcs7" : "") + " in+" + std::to_string(in_shift) +
           (in_place ? " in place" : " out+" + std::to_string(out_shift)) +
           (algorithm->is_aead() ? " aad " + std::to_string(aad_len) + " tag " + std::to_string(tag_len) : "") +
           (bad_tag ? " bad tag" : "") + " iv " + std::to_string(iv.size());
  }
};

std::deque<Key> keys;

const Key& random_key(const Algorithm& algorithm) {
  return keys.emplace_back(algorithm, random_bytes(algorithm.key_len()));
}

// Where a case's bytes lie in the arena: the same offsets on the device and in the host's copy.
struct Place {
  std::size_t in, out, tag;
};

constexpr std::size_t guard = 256;

class Batch {
 public:
  void add(Case c) {
    const bool short_iv = !c.iv.empty() && c.iv.size() < 8;  // would soon be used twice under one key
    if (c.key == nullptr || short_iv) c.key = &random_key(*c.algorithm);
    if (c.iv.empty() && c.algorithm->mode.iv == IvRule::block) c.iv = random_bytes(c.algorithm->block_len());
    if (c.iv.empty() && c.algorithm->mode.iv == IvRule::any) c.iv = random_bytes(12);
    const std::size_t room = c.len + 16;
    Place place{};
    place.in = reserve(room) + c.in_shift;
    place.out = c.in_place ? place.in : reserve(room) + c.out_shift;
    place.tag = reserve(16) + c.in_shift % 3;
    cases_.push_back(std::move(c));
    places_.push_back(place);
  }

  // Runs all cases as one plan on both engines; returns the number of cases that differ.
  int run(Stream stream) {
    std::vector<std::vector<std::uint8_t>> aads;
    for (const Case& c : cases_) aads.push_back(random_bytes(c.aad_len));
    std::vector<std::uint8_t> expected = random_bytes(size_);
    prepare_tags(expected, aads);
    void* device = nullptr;
    must(cudaMalloc(&device, size_), "cudaMalloc");
    must(cudaMemcpy(device, expected.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy");
    // A copy from pageable memory may return before its last part has arrived, and `stream` does not wait for it.
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

    std::vector<Status> statuses(cases_.size(), Status::engine_failure);
    std::vector<Status> expected_statuses(cases_.size(), Status::engine_failure);
    const std::vector<Message> messages = make_messages(static_cast<std::uint8_t*>(device), Memory::device, aads);
    const std::vector<Message> host_messages = make_messages(expected.data(), Memory::host, aads);
    check_messages(messages);
    cuda_engine().run(make_plan(messages, cuda_engine().tile_units()), statuses, stream);
    oracle().run(make_plan(host_messages, oracle().tile_units()), expected_statuses, nullptr);
    must(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
    std::vector<std::uint8_t> got(size_);
    must(cudaMemcpy(got.data(), device, size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(device), "cudaFree");
    return compare(expected, got, expected_statuses, statuses);
  }

  std::size_t count() const { return cases_.size(); }

 private:
  std::size_t reserve(std::size_t len) {
    const std::size_t start = size_ + guard;
    size_ = (start + len + 32 + guard + 255) / 256 * 256;
    return start;
  }

  std::vector<Message> make_messages(std::uint8_t* arena, Memory memory,
                                     const std::vector<std::vector<std::uint8_t>>& aads) const {
    std::vector<Message> messages;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const Case& c = cases_[i];
      Message m;
      m.key = c.key;
      m.direction = c.direction;
      m.padding = c.padding;
      m.memory = memory;
      m.in = arena + places_[i].in;
      m.in_len = c.len;
      m.out = arena + places_[i].out;
      m.out_len = m.output_len();
      m.iv = c.iv.data();
      m.iv_len = c.iv.size();
      m.aad = aads[i].data();
      m.aad_len = aads[i].size();
      if (c.algorithm->is_aead()) {
        m.tag = arena + places_[i].tag;
        m.tag_len = c.tag_len;
      }
      messages.push_back(m);
    }
    return messages;
  }

  // Decryption of an AEAD needs a tag that matches: encrypts the arena's bytes with the oracle for it.
  void prepare_tags(std::vector<std::uint8_t>& arena, const std::vector<std::vector<std::uint8_t>>& aads) const {
    const std::vector<Message> all = make_messages(arena.data(), Memory::host, aads);
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (!cases_[i].algorithm->is_aead() || cases_[i].direction == Direction::encrypt) continue;
      Message m = all[i];
      m.direction = Direction::encrypt;
      m.out = const_cast<std::uint8_t*>(m.in);
      Status status = Status::ok;
      oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
      if (cases_[i].bad_tag) m.tag[random_below(m.tag_len)] ^= static_cast<std::uint8_t>(1u << random_below(8));
    }
  }

  int compare(const std::vector<std::uint8_t>& expected, const std::vector<std::uint8_t>& got,
              const std::vector<Status>& expected_statuses, const std::vector<Status>& statuses) const {
    int failures = 0;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const std::size_t start = places_[i].in / 256 * 256 - guard;
      const std::size_t end = i + 1 < cases_.size() ? places_[i + 1].in / 256 * 256 - guard : size_;
      std::size_t at = start;
      while (at < end && expected[at] == got[at]) ++at;
      if (at == end && expected_statuses[i] == statuses[i]) continue;
      if (++failures > 4) continue;
      std::printf("  DIFFERS %s (message %zu of %zu): status %d expected %d", cases_[i].text().c_str(), i,
                  cases_.size(), static_cast<int>(statuses[i]), static_cast<int>(expected_statuses[i]));
      if (at != end) {
        std::printf(", first byte at out%+lld, tag%+lld\n    expected",
                    static_cast<long long>(at) - static_cast<long long>(places_[i].out),
                    static_cast<long long>(at) - static_cast<long long>(places_[i].tag));
        for (std::size_t k = at; k < at + 16 && k < end; ++k) std::printf(" %02x", expected[k]);
        std::printf("\n    got     ");
        for (std::size_t k = at; k < at + 16 && k < end; ++k) std::printf(" %02x", got[k]);
      }
      std::printf("\n");
    }
    return failures;
  }

  std::vector<Case> cases_;
  std::vector<Place> places_;
  std::size_t size_ = 0;
};

// A length that the algorithm takes, near `len`.
std::size_t fit(const Algorithm& algorithm, Padding padding, std::size_t len) {
  if (algorithm.mode.id == Mode::xts && len < 16) return len + 16;
  if (algorithm.mode.whole_blocks && padding == Padding::none)
    return len / algorithm.block_len() * algorithm.block_len();
  return len;
}

Case random_case(const Algorithm& algorithm, Direction direction, std::size_t len) {
  Case c;
  c.algorithm = &algorithm;
  c.direction = direction;
  if (algorithm.takes_padding() && direction == Direction::encrypt && random_below(2) == 0) c.padding = Padding::pkcs7;
  c.len = fit(algorithm, c.padding, len);
  c.in_place = random_below(2) == 0;
  c.in_shift = random_below(2) == 0 ? 0 : random_below(17);
  c.out_shift = random_below(2) == 0 ? c.in_shift : random_below(17);
  if (algorithm.is_aead()) {
    constexpr std::size_t tag_lens[] = {4, 8, 12, 13, 14, 15, 16};
    constexpr std::size_t iv_lens[] = {12, 12, 1, 8, 16, 17, 64, 129};
    c.tag_len = tag_lens[random_below(7)];
    c.iv = random_bytes(iv_lens[random_below(8)]);
    c.aad_len = random_below(3) == 0 ? 0 : random_below(random_below(4) == 0 ? 70000 : 200);
    c.bad_tag = direction == Direction::decrypt && random_below(4) == 0;
  }
  return c;
}

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

struct Options {
  bool quick = false;
  bool large = true;
  bool host_data = false;
  bool columns = false;
  std::string only;
  unsigned sample = 1;
  unsigned part = 0;  // of `parts`: the steps whose number is part modulo parts
  unsigned parts = 1;
};

// Whether the next text of those that get a launch of their own is run.
bool sampled(const Options& options) {
  static unsigned turn = 0;
  return turn++ % options.sample == 0;
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
int test_counter_tiles(const Algorithm& algorithm, const Options& options, Stream stream, std::size_t& count) {
  constexpr std::size_t tile = 256;
  int failures = 0;
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
      if (last % 32 == 31 && sampled(options)) {
        Batch alone;
        alone.add(c);
        failures += alone.run(stream);
        ++count;
      }
      together.add(c);
    }
  }
  failures += together.run(stream);
  count += together.count();
  if (algorithm.key_len() != 16) return failures;
  Batch long_one;
  Case c = random_case(algorithm, Direction::decrypt, 300 * tile * 16 + 5);
  c.in_shift = c.out_shift = 0;
  c.iv = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xff, 0xff, 0x80, 0x42};
  long_one.add(c);
  failures += long_one.run(stream);
  ++count;
  return failures;
}

// thin: what differs from another form of the tables or size of the key was tested there. Then each length runs once
// alone, in place or not in turn.
int test_algorithm(const Algorithm& algorithm, const Options& options, Stream stream, bool thin = false) {
  int failures = 0;
  std::size_t count = 0;
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
        Batch batch;
        batch.add(c);
        failures += batch.run(stream);
        ++count;
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
    failures += together.run(stream);
    count += together.count();
    Batch one_key;
    const Key& key = random_key(algorithm);
    for (const std::size_t len : {1000, 300, 20}) {
      Case c = random_case(algorithm, direction, len);
      c.key = &key;
      one_key.add(c);
    }
    failures += one_key.run(stream);
    count += one_key.count();
    if (algorithm.mode.id == Mode::ctr || algorithm.mode.id == Mode::gcm) {
      Batch wrapping;
      for (const std::size_t ones : {1, 2, 4, 8, 16}) {
        for (const std::size_t len : {300, 5000, 9000}) {
          Case c = random_case(algorithm, direction, len);
          c.key = &random_key(algorithm);
          c.iv = wrapping_counter(ones);
          if (algorithm.mode.id == Mode::gcm) c.iv = iv_for(*c.key, c.iv);
          if (!thin && sampled(options)) {
            Batch alone;
            alone.add(c);
            failures += alone.run(stream);
            ++count;
          }
          wrapping.add(c);
        }
      }
      failures += wrapping.run(stream);
      count += wrapping.count();
    }
  }
  if (algorithm.mode.id == Mode::ctr) failures += test_counter_tiles(algorithm, options, stream, count);
  std::printf("%-16s %4zu cases %s\n", std::string(algorithm.name).c_str(), count, failures == 0 ? "ok" : "FAILED");
  std::fflush(stdout);
  return failures;
}

// Short messages of the counter modes, packed into warps in groups of lanes of every size: lengths around the average
// that decides the size, counters that carry anywhere, some tags that do not match, one key and several.
int test_packed(const Algorithm& algorithm, const Options& options, Stream stream) {
  int failures = 0;
  std::size_t count = 0;
  setenv("WARPCIPHER_COUNTER", "packed", 1);
  for (const std::size_t average : {20, 100, 250, 500, 1000, 3000}) {
    for (const bool one_key : {true, false}) {
      Batch batch;
      const Key& key = random_key(algorithm);
      const Direction direction = random_below(2) == 0 ? Direction::encrypt : Direction::decrypt;
      for (int i = 0; i < (options.quick ? 37 : 500); ++i) {
        Case c =
            random_case(algorithm, direction, random_below(8) == 0 ? random_below(16384) : random_below(2 * average));
        if (algorithm.is_aead()) {
          c.aad_len = random_below(40);
          if (random_below(2) == 0) c.iv = random_bytes(12);
        } else {
          c.iv = random_bytes(16);
          if (random_below(2) == 0) c.iv[15] = static_cast<std::uint8_t>(0xff - random_below(70));
          if (random_below(4) == 0) std::fill(c.iv.begin(), c.iv.end() - 1, std::uint8_t{0xff});
        }
        if (one_key && c.iv.size() >= 8) c.key = &key;
        if (random_below(2) == 0) c.in_shift = c.out_shift = 0;
        batch.add(c);
      }
      failures += batch.run(stream);
      count += batch.count();
    }
  }
  unsetenv("WARPCIPHER_COUNTER");
  std::printf("%-16s %4zu messages packed into warps %s\n", std::string(algorithm.name).c_str(), count,
              failures == 0 ? "ok" : "FAILED");
  return failures;
}

// Messages of serial modes, a lane each, whose warps load and store chunks of 128 bytes together: lengths around the
// edges of chunks, with some lanes of a warp done long before the others, or not aligned, or not there.
int test_serial(const Algorithm& algorithm, const Options& options, Stream stream) {
  int failures = 0;
  std::size_t count = 0;
  for (const std::size_t longest : {140, 1100}) {
    Batch batch;
    for (int i = 0; i < (options.quick ? 75 : 2000); ++i) {
      const bool edge = random_below(2) == 0;
      Case c = random_case(algorithm, Direction::encrypt,
                           edge ? 128 * random_below(longest / 128) + random_below(3) : random_below(longest));
      if (random_below(4) != 0) c.in_shift = c.out_shift = 16 * random_below(2);
      batch.add(c);
    }
    failures += batch.run(stream);
    count += batch.count();
  }
  std::printf("%-16s %4zu messages, a lane each %s\n", std::string(algorithm.name).c_str(), count,
              failures == 0 ? "ok" : "FAILED");
  return failures;
}

// Long messages of the counter modes, each alone, by two kinds of warps at once: whole tiles and odd ends, counters
// that carry past 32 bits and past all, tags that do not match.
int test_mixed_warps(const Algorithm& algorithm, const Options& options, Stream stream) {
  constexpr std::size_t tile = 256 * 16;
  int failures = 0;
  std::size_t count = 0;
  setenv("WARPCIPHER_COUNTER", "mixed", 1);
  for (const std::size_t tiles : {3, 7, 24, options.quick ? 40 : 5000}) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      if (!algorithm.is_aead() && direction == Direction::decrypt) continue;  // the same
      Case c = random_case(algorithm, direction, tiles * tile - random_below(tile));
      c.in_shift = c.out_shift = 0;
      c.in_place = tiles % 2 == 0;
      c.iv = random_bytes(algorithm.is_aead() ? 12 : 16);
      if (!algorithm.is_aead()) std::fill(c.iv.begin() + (tiles == 24 ? 0 : 12), c.iv.begin() + 14, std::uint8_t{0xff});
      c.key = &random_key(algorithm);
      for (const bool bad_tag : {false, true}) {
        if (bad_tag && (direction == Direction::encrypt || tiles != 7)) continue;
        c.bad_tag = bad_tag;
        Batch alone;
        alone.add(c);
        failures += alone.run(stream);
        ++count;
      }
    }
  }
  unsetenv("WARPCIPHER_COUNTER");
  std::printf("%-16s %4zu long messages by two kinds of warps %s\n", std::string(algorithm.name).c_str(), count,
              failures == 0 ? "ok" : "FAILED");
  std::fflush(stdout);
  return failures;
}

// A key for each message, more of them than a warp has lanes, and keys shared at random: what batches derive on the
// GPU.
int test_many_keys(const Algorithm& algorithm, const Options& options, Stream stream) {
  int failures = 0;
  std::size_t count = 0;
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
      failures += batch.run(stream);
      count += batch.count();
    }
  }
  std::printf("%-16s %4zu messages with many keys %s\n", std::string(algorithm.name).c_str(), count,
              failures == 0 ? "ok" : "FAILED");
  return failures;
}

// Every algorithm and both directions in one plan.
int test_mixed(const Options& options, Stream stream) {
  Batch batch;
  for (int i = 0; i < (options.quick ? 120 : 2000); ++i) {
    const Algorithm& algorithm = algorithms()[random_below(algorithms().size())];
    const Direction direction = random_below(2) == 0 ? Direction::encrypt : Direction::decrypt;
    batch.add(random_case(algorithm, direction, random_below(options.quick ? 600 : 6000)));
  }
  const int failures = batch.run(stream);
  std::printf("%-16s %4zu cases %s\n", "mixed", batch.count(), failures == 0 ? "ok" : "FAILED");
  return failures;
}

// Memory of the host given as memory of the device is refused.
int test_refusal() {
  std::vector<std::uint8_t> text(64);
  const Key& key = random_key(find_algorithm("aes-128-ecb"));
  Message m;
  m.key = &key;
  m.memory = Memory::device;
  m.in = m.out = text.data();
  m.in_len = m.out_len = text.size();
  Status status = Status::ok;
  try {
    cuda_engine().run(make_plan({&m, 1}, cuda_engine().tile_units()), {&status, 1}, nullptr);
  } catch (const Error& error) {
    const bool right = error.status() == Status::invalid_argument;
    std::printf("%-16s %s: %s\n", "host pointer", right ? "ok" : "FAILED", error.what());
    return right ? 0 : 1;
  }
  std::printf("%-16s FAILED: not refused\n", "host pointer");
  return 1;
}

Options parse(int argc, char** argv) {
  Options options;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      options.quick = true;
      options.large = false;
    } else if (argument == "--no-large") {
      options.large = false;
    } else if (argument == "--host-data") {
      options.host_data = true;
    } else if (argument == "--columns") {
      options.columns = true;
    } else if (argument == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (argument == "--sample" && i + 1 < argc && std::sscanf(argv[i + 1], "%u", &options.sample) == 1 &&
               options.sample > 0) {
      ++i;
    } else if (argument == "--part" && i + 1 < argc &&
               std::sscanf(argv[i + 1], "%u/%u", &options.part, &options.parts) == 2 && options.part < options.parts) {
      ++i;
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr,
                   "usage: %s [--quick] [--sample N] [--no-large] [--only ALGORITHM] [--host-data | --columns] "
                   "[--part I/N] [--seed N]\n",
                   argv[0]);
      std::exit(2);
    }
  }
  generator.seed(seed);
  return options;
}

// Whether the current device can run that form of GHASH.
bool has_ghash(const std::string& form) {
  int device = 0;
  cudaDeviceProp properties{};
  must(cudaGetDevice(&device), "cudaGetDevice");
  must(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  if (form == "warpgroups") return properties.major == 9 && properties.minor == 0;
  return (form != "tensor" && form != "rows") || properties.major == 8 || properties.major == 9;
}

int run_all(const Options& options) {
  const DeviceEngine& engine = cuda_engine();
  if (!engine.unavailable_reason().empty()) {
    std::fprintf(stderr, "cuda engine cannot run here: %s\n", engine.unavailable_reason().c_str());
    return 2;
  }
  for (const std::string& device : engine.devices()) std::printf("%s\n", device.c_str());
  unsigned step = 0;
  const auto is_mine = [&] { return step++ % options.parts == options.part; };
  if (options.host_data) return test_host_data(options.quick, options.only, is_mine) == 0 ? 0 : 1;
  Stream stream = cuda_engine().create_stream();
  if (options.columns) return test_columns(options.quick, options.only, is_mine, stream) == 0 ? 0 : 1;
  int failures = 0;
  for (const char* form : {"128", "64"}) {
    setenv("WARPCIPHER_LANE_TABLE", form, 1);
    std::printf("lane tables of %s KiB\n", form);
    for (const Algorithm& algorithm : algorithms()) {
      if (!options.only.empty() && algorithm.name != options.only) continue;
      if (!is_aes(algorithm.cipher.id) && std::string(form) == "64") continue;  // the form is of AES
      if (!is_mine()) continue;
      const bool thin = options.quick && (std::string(form) == "64" || algorithm.cipher.key_len == 24);
      failures += test_algorithm(algorithm, options, stream, thin);
    }
    if (options.only.empty() && is_mine()) failures += test_mixed(options, stream);
  }
  unsetenv("WARPCIPHER_LANE_TABLE");
  for (const char* form : {"lanes", "rows", "scalar", "tensor", "warpgroups"}) {
    if (!has_ghash(form)) continue;
    setenv("WARPCIPHER_GHASH", form, 1);
    std::printf("GHASH, %s\n", form);
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.mode.id != Mode::gcm || (!options.only.empty() && algorithm.name != options.only)) continue;
      if (!is_mine()) continue;
      failures += test_algorithm(algorithm, options, stream);
      failures += test_many_keys(algorithm, options, stream);
      if (options.only.empty()) break;  // one key size says it all
    }
  }
  unsetenv("WARPCIPHER_GHASH");
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_aes(algorithm.cipher.id) || (!options.only.empty() && algorithm.name != options.only)) continue;
    if (is_mine()) failures += test_many_keys(algorithm, options, stream);
    const bool counts = algorithm.mode.id == Mode::ctr || algorithm.mode.id == Mode::gcm;
    if (counts && is_mine()) failures += test_packed(algorithm, options, stream);
    if (!algorithm.parallel(Direction::encrypt) && is_mine()) failures += test_serial(algorithm, options, stream);
    if (counts && is_mine()) failures += test_mixed_warps(algorithm, options, stream);
  }
  failures += test_columns(options.quick, options.only, is_mine, stream);
  if (options.only.empty() && is_mine()) failures += test_refusal();
  failures += test_host_data(options.quick, options.only, is_mine);
  if (options.large && is_mine()) failures += test_large(stream, options.only);
  cuda_engine().destroy_stream(stream);
  std::printf(failures == 0 ? "all ok\n" : "%d FAILED\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "FAILED: %s\n", error.what());
    return 1;
  }
}
