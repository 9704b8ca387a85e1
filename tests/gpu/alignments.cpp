// SPDX-License-Identifier: Apache-2.0
#include "alignments.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "engine/device_engine.hpp"
#include "force.hpp"
#include "message/plan.hpp"
#include "oracle.hpp"

namespace conformance {
namespace {

constexpr std::size_t word = 16;
constexpr std::size_t tile = 256 * word;

// Of whole blocks: rows of 32, groups of four rows, tiles, and what kernels take for few blocks.
std::size_t edge_len() {
  constexpr std::size_t blocks[] = {0,   1,   2,   31,  32,  33,  63,  64,  65,  66,  95,  96,
                                    97,  127, 128, 129, 159, 160, 191, 192, 193, 223, 254, 255,
                                    256, 257, 320, 383, 384, 385, 511, 512, 513, 640};
  constexpr std::size_t bytes[] = {0, 0, 0, 1, 15, 7};
  return word * blocks[random_below(std::size(blocks))] + bytes[random_below(std::size(bytes))];
}

bool counts(const Algorithm& algorithm) { return algorithm.mode.id == Mode::ctr || algorithm.is_aead(); }

Case case_at(const Algorithm& algorithm, Direction direction, std::size_t len, std::size_t in_shift,
             std::size_t out_shift) {
  Case c = random_case(algorithm, direction, len);
  c.padding = Padding::none;
  c.in_shift = in_shift;
  c.out_shift = out_shift;
  c.in_place = in_shift == out_shift && random_below(2) == 0;
  if (algorithm.is_aead()) {
    c.aad_len = random_below(50);
    c.bad_tag = c.bad_tag && random_below(4) == 0;
    c.iv = random_iv(algorithm);
  }
  if (algorithm.mode.id == Mode::ctr) {
    c.iv = random_bytes(16);
    if (random_below(2) == 0) c.iv[15] = static_cast<std::uint8_t>(0xff - random_below(70));
    if (random_below(4) == 0) std::fill(c.iv.begin(), c.iv.end() - 1, std::uint8_t{0xff});
  }
  if (algorithm.mode.whole_blocks) c.len = c.len / algorithm.block_len() * algorithm.block_len();
  return c;
}

// A device allocation with a text at byte `shift`, and no aligned word of 16 bytes before or after its own.
class Exact {
 public:
  Exact(std::size_t len, std::size_t shift, const std::vector<std::uint8_t>& all)
      : size_(std::max(word, (shift + len + word - 1) / word * word)), shift_(shift) {
    must(cudaMalloc(&memory_, size_), "cudaMalloc");
    must(cudaMemcpy(memory_, all.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~Exact() { cudaFree(memory_); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  std::uint8_t* text() const { return static_cast<std::uint8_t*>(memory_) + shift_; }
  bool equals(const std::vector<std::uint8_t>& expected) const {
    std::vector<std::uint8_t> got(size_);
    must(cudaMemcpy(got.data(), memory_, size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return std::equal(got.begin(), got.end(), expected.begin());
  }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
  std::size_t shift_;
};

// One message whose text and output have an allocation each; a sanitizer sees what is accessed outside of them. Returns
// whether the output is right.
bool run_exact(const Case& c, Stream stream) {
  const std::size_t room = c.len + 3 * word;
  std::vector<std::uint8_t> text = random_bytes(room), out = random_bytes(room);
  std::vector<std::uint8_t> tag = random_bytes(word);
  const Key& key = random_key(*c.algorithm);
  const std::vector<std::uint8_t> aad = random_bytes(c.aad_len);
  Message m;
  m.key = &key;
  m.direction = Direction::encrypt;
  m.in_len = m.out_len = c.len;
  m.iv = c.iv.data();
  m.iv_len = c.iv.size();
  m.aad = aad.data();
  m.aad_len = aad.size();
  m.tag_len = c.algorithm->is_aead() ? c.tag_len : 0;
  Status expected = Status::engine_failure, status = Status::engine_failure;
  const Exact device_text(c.len, c.in_shift, text);
  const Exact device_out(c.len, c.out_shift, out);
  const Exact device_tag(word, 0, tag);
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  m.memory = Memory::device;
  m.in = device_text.text();
  m.out = device_out.text();
  if (m.tag_len != 0) m.tag = device_tag.text();
  cuda_engine().run(make_plan({&m, 1}, cuda_engine().tile_units()), {&status, 1}, stream);
  must(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
  m.memory = Memory::host;
  m.in = text.data() + c.in_shift;
  m.out = out.data() + c.out_shift;
  if (m.tag_len != 0) m.tag = tag.data();
  oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&expected, 1}, nullptr);
  const bool right = status == expected && device_text.equals(text) && device_out.equals(out) && device_tag.equals(tag);
  if (!right) std::printf("  DIFFERS in allocations of its own: %s\n", c.text().c_str());
  return right;
}

}  // namespace

int test_alignments(const Algorithm& algorithm, const Options& options, Stream stream) {
  Tally tally(stream);
  int failures = 0;
  for (const char* kernel : {"hybrid", "tiles"}) {
    force("counter", kernel);
    force("text", kernel);
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      if (algorithm.mode.id == Mode::ctr && direction == Direction::decrypt) continue;  // the same
      if (!algorithm.parallel(direction) && !algorithm.is_aead()) continue;
      for (const bool one_key : {true, false}) {
        const bool is_hybrid = kernel[0] == 'h';
        if (options.quick && one_key != (is_hybrid == (direction == Direction::encrypt))) continue;
        Batch batch;
        const Key* const key = &random_key(algorithm);
        for (std::size_t pair = 0; pair < 256; ++pair) {
          Case c = case_at(algorithm, direction, edge_len(), pair / 16, pair % 16);
          if (one_key || random_below(4) == 0) c.key = key;
          batch.add(c);
        }
        tally.run(batch);
      }
      for (std::size_t shift = 0; shift < 16; ++shift) {
        for (int i = 0; i < (options.quick ? 1 : 16); ++i) {
          const std::size_t len = counts(algorithm) || i % 2 == 0 ? 3 * tile + edge_len() : edge_len();
          tally.run_alone(case_at(algorithm, direction, len, shift, i % 2 == 0 ? random_below(16) : shift));
        }
      }
    }
    if (algorithm.mode.id == Mode::xts || !algorithm.parallel(Direction::encrypt)) continue;
    for (std::size_t shift = 0; shift < 16; ++shift) {
      const std::size_t len = shift % 4 == 0 ? random_below(40) : (shift % 2 == 0 ? 3 * tile : 0) + edge_len();
      if (!run_exact(case_at(algorithm, Direction::encrypt, len, shift, random_below(16)), stream)) ++failures;
    }
  }
  force("text", nullptr);
  force("counter", nullptr);
  return failures + tally.report(algorithm.name, "messages at every alignment");
}

}  // namespace conformance
