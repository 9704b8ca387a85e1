// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <stdexcept>

#include "engine/device_engine.hpp"
#include "message/plan.hpp"
#include "oracle.hpp"

namespace conformance {
namespace {

constexpr std::size_t guard = 256;

std::deque<Key> keys;

// A length that the algorithm takes, near `len`.
std::size_t fit(const Algorithm& algorithm, Padding padding, std::size_t len) {
  if (algorithm.mode.id == Mode::xts && len < 16) return len + 16;
  if (algorithm.mode.whole_blocks && padding == Padding::none)
    return len / algorithm.block_len() * algorithm.block_len();
  return len;
}

}  // namespace

std::mt19937_64 generator;

std::size_t random_below(std::size_t n) { return n == 0 ? 0 : generator() % n; }

std::vector<std::uint8_t> random_bytes(std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (std::size_t at = 0; at < n; at += 8) {
    const std::uint64_t drawn = generator();
    std::memcpy(bytes.data() + at, &drawn, std::min<std::size_t>(8, n - at));
  }
  return bytes;
}

void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

bool sampled(const Options& options) {
  static unsigned turn = 0;
  return turn++ % options.sample == 0;
}

const Key& random_key(const Algorithm& algorithm) {
  return keys.emplace_back(algorithm, random_bytes(algorithm.key_len()));
}

void Batch::add(Case c) {
  const bool short_iv = !c.iv.empty() && c.iv.size() < 8;  // would soon be used twice under one key
  if (c.key == nullptr || short_iv) c.key = &random_key(*c.algorithm);
  if (c.iv.empty()) c.iv = random_iv(*c.algorithm);
  const std::size_t room = c.len + 16;
  Place place{};
  place.in = reserve(room) + c.in_shift;
  place.out = c.in_place ? place.in : reserve(room) + c.out_shift;
  place.tag = reserve(16) + c.in_shift % 3;
  cases_.push_back(std::move(c));
  places_.push_back(place);
}

int Batch::run(Stream stream) {
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
  if (!cases_[0].computes_tag) check_messages(messages);  // else the library makes them, and not from outside
  cuda_engine().run(make_plan(messages, cuda_engine().tile_units()), statuses, stream);
  oracle().run(make_plan(host_messages, oracle().tile_units()), expected_statuses, nullptr);
  must(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
  std::vector<std::uint8_t> got(size_);
  must(cudaMemcpy(got.data(), device, size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
  must(cudaFree(device), "cudaFree");
  return compare(expected, got, expected_statuses, statuses);
}

std::size_t Batch::reserve(std::size_t len) {
  const std::size_t start = size_ + guard;
  size_ = (start + len + 32 + guard + 255) / 256 * 256;
  return start;
}

std::vector<Message> Batch::make_messages(std::uint8_t* arena, Memory memory,
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
      m.compute_tag = c.computes_tag;
    }
    messages.push_back(m);
  }
  return messages;
}

void Batch::prepare_tags(std::vector<std::uint8_t>& arena, const std::vector<std::vector<std::uint8_t>>& aads) const {
  const std::vector<Message> all = make_messages(arena.data(), Memory::host, aads);
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    if (!cases_[i].algorithm->is_aead() || cases_[i].direction == Direction::encrypt) continue;
    if (cases_[i].computes_tag) continue;
    Message m = all[i];
    m.direction = Direction::encrypt;
    m.out = const_cast<std::uint8_t*>(m.in);
    Status status = Status::ok;
    oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
    if (cases_[i].bad_tag) m.tag[random_below(m.tag_len)] ^= static_cast<std::uint8_t>(1u << random_below(8));
  }
}

int Batch::compare(const std::vector<std::uint8_t>& expected, const std::vector<std::uint8_t>& got,
                   const std::vector<Status>& expected_statuses, const std::vector<Status>& statuses) const {
  int failures = 0;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const std::size_t start = places_[i].in / 256 * 256 - guard;
    const std::size_t end = i + 1 < cases_.size() ? places_[i + 1].in / 256 * 256 - guard : size_;
    std::size_t at = start;
    while (at < end && expected[at] == got[at]) ++at;
    if (at == end && expected_statuses[i] == statuses[i]) continue;
    if (++failures > 4) continue;
    std::printf("  DIFFERS %s (message %zu of %zu): status %d expected %d", cases_[i].text().c_str(), i, cases_.size(),
                static_cast<int>(statuses[i]), static_cast<int>(expected_statuses[i]));
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
    constexpr std::size_t tag_lens[] = {4, 6, 8, 10, 12, 13, 14, 15, 16};
    constexpr std::size_t iv_lens[] = {12, 12, 1, 8, 16, 17, 64, 129};
    c.tag_len = tag_lens[random_below(9)];
    if (!algorithm.takes_tag_len(c.tag_len)) c.tag_len = full_tag_len;
    if (algorithm.mode.iv == IvRule::any) {
      std::size_t iv_len =
          std::clamp(iv_lens[random_below(8)], algorithm.mode.least_iv_len, algorithm.mode.most_iv_len);
      while (algorithm.mode.most_text_len_with(iv_len) < c.len) --iv_len;
      c.iv = random_bytes(iv_len);
    }
    c.aad_len = random_below(3) == 0 ? 0 : random_below(random_below(4) == 0 ? 70000 : 200);
    c.bad_tag = direction == Direction::decrypt && random_below(4) == 0;
  }
  return c;
}

std::vector<std::uint8_t> random_iv(const Algorithm& algorithm) {
  std::vector<std::uint8_t> iv = random_bytes(algorithm.iv_len);
  if (algorithm.mode.id == Mode::stream) iv[3] &= 0x7f;  // a counter with blocks left
  return iv;
}

void Tally::run(Batch& batch) {
  failures_ += batch.run(stream_);
  count_ += batch.count();
}

void Tally::run_alone(const Case& c) {
  Batch alone;
  alone.add(c);
  run(alone);
}

int Tally::report(std::string_view name, const char* what) const {
  std::printf("%-16s %4zu %s %s\n", std::string(name).c_str(), count_, what, failures_ == 0 ? "ok" : "FAILED");
  std::fflush(stdout);
  return failures_;
}

}  // namespace conformance
