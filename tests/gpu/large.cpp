// SPDX-License-Identifier: Apache-2.0
#include "large.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cases.hpp"
#include "core/bytes.hpp"
#include "engine/device_engine.hpp"
#include "message/plan.hpp"
#include "oracle.hpp"

namespace {

using namespace warpcipher;
using conformance::DeviceBytes;
using conformance::must;

constexpr std::size_t four_gib = std::size_t{1} << 32;
constexpr std::size_t text_len = four_gib + 8195;  // ends inside a block
constexpr std::size_t pattern_len = (std::size_t{1} << 24) - 3;
constexpr std::size_t window_len = 1 << 16;

// A pattern whose length is odd, so that no offset modulo a power of two reads like another.
std::vector<std::uint8_t> make_pattern() {
  std::vector<std::uint8_t> pattern(pattern_len);
  std::uint32_t x = 12345;
  for (std::uint8_t& byte : pattern) {
    x = x * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(x >> 24);
  }
  return pattern;
}

void fill(const DeviceBytes& device, const std::vector<std::uint8_t>& pattern) {
  for (std::size_t offset = 0; offset < text_len; offset += pattern.size()) {
    must(cudaMemcpy(device.data + offset, pattern.data(), std::min(pattern.size(), text_len - offset),
                    cudaMemcpyHostToDevice),
         "cudaMemcpy");
  }
}

std::vector<std::uint8_t> expected_text(const std::vector<std::uint8_t>& pattern, std::size_t offset, std::size_t len) {
  std::vector<std::uint8_t> text(len);
  for (std::size_t i = 0; i < len; ++i) text[i] = pattern[(offset + i) % pattern.size()];
  return text;
}

Status run_on(Engine& engine, const Message& message, Stream stream) {
  Status status = Status::engine_failure;
  // Copies from pageable memory may return before they have arrived, and `stream` does not wait for them.
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  engine.run(make_plan({&message, 1}, engine.tile_units()), {&status, 1}, stream);
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return status;
}

Message whole_text(const Key& key, Direction direction, const std::uint8_t* in, std::uint8_t* out,
                   const std::vector<std::uint8_t>& iv) {
  Message m;
  m.key = &key;
  m.direction = direction;
  m.memory = Memory::device;
  m.in = in;
  m.out = out;
  m.in_len = m.out_len = text_len;
  m.iv = iv.data();
  m.iv_len = iv.size();
  return m;
}

// Windows of the ciphertext at the start, around 4 GiB and at the end, against the oracle in CTR mode started
// at the window's counter.
bool windows_match(const DeviceBytes& out, const std::vector<std::uint8_t>& pattern, const Key& ctr_key,
                   const std::vector<std::uint8_t>& first_counter) {
  bool good = true;
  for (const std::size_t offset :
       {std::size_t{0}, four_gib / 2, four_gib - window_len / 2, text_len / 16 * 16 - 4096}) {
    const std::size_t len = std::min(window_len, text_len - offset);
    std::vector<std::uint8_t> counter = first_counter;
    add_be128(counter.data(), offset / 16);
    std::vector<std::uint8_t> text = expected_text(pattern, offset, len);
    Message m;
    m.key = &ctr_key;
    m.in = m.out = text.data();
    m.in_len = m.out_len = len;
    m.iv = counter.data();
    m.iv_len = 16;
    Status status = Status::ok;
    oracle().run(make_plan({&m, 1}, oracle().tile_units()), {&status, 1}, nullptr);
    if (out.read(offset, len) != text) {
      std::printf("  DIFFERS in the window at %zu\n", offset);
      good = false;
    }
  }
  return good;
}

int report(const char* what, bool good) {
  std::printf("%-40s %s\n", what, good ? "ok" : "FAILED");
  std::fflush(stdout);
  return good ? 0 : 1;
}

bool all_zero(const std::vector<std::uint8_t>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

constexpr std::uint8_t key_bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

int test_ctr(const DeviceBytes& in, const DeviceBytes& out, const std::vector<std::uint8_t>& pattern, Stream stream) {
  const Key key(find_algorithm("aes-128-ctr"), key_bytes);
  const std::vector<std::uint8_t> iv{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0xf7, 0xff, 0xff, 0xf0};  // wraps at 2^128 half way
  run_on(cuda_engine(), whole_text(key, Direction::encrypt, in.data, out.data, iv), stream);
  return report("aes-128-ctr of more than 4 GiB", windows_match(out, pattern, key, iv));
}

int test_gcm(const DeviceBytes& in, const DeviceBytes& out, const std::vector<std::uint8_t>& pattern, Stream stream) {
  const Key key(find_algorithm("aes-128-gcm"), key_bytes);
  const Key ctr_key(find_algorithm("aes-128-ctr"), key_bytes);
  const std::vector<std::uint8_t> iv(12, 7);
  std::vector<std::uint8_t> counter(16, 0);  // inc32(J0)
  std::copy(iv.begin(), iv.end(), counter.begin());
  counter[15] = 2;
  const DeviceBytes tag(16);
  Message encryption = whole_text(key, Direction::encrypt, in.data, out.data, iv);
  encryption.tag = tag.data;
  encryption.tag_len = 16;
  run_on(cuda_engine(), encryption, stream);
  int failures = report("aes-128-gcm of more than 4 GiB: text", windows_match(out, pattern, ctr_key, counter));

  Engine& cpu = find_engine("cpu");  // hashes all of it with other code
  std::vector<std::uint8_t> host = out.read(0, text_len);
  std::vector<std::uint8_t> host_tag = tag.read(0, 16);
  Message check = whole_text(key, Direction::decrypt, host.data(), host.data(), iv);
  check.memory = Memory::host;
  check.tag = host_tag.data();
  check.tag_len = 16;
  failures += report("aes-128-gcm of more than 4 GiB: tag", run_on(cpu, check, nullptr) == Status::ok);

  Message decryption = whole_text(key, Direction::decrypt, out.data, out.data, iv);
  decryption.tag = tag.data;
  decryption.tag_len = 16;
  const std::uint8_t last = out.read(text_len - 1, 1)[0];
  const std::uint8_t flipped = last ^ 0x80;
  const DeviceBytes copy(text_len);
  must(cudaMemcpy(copy.data, out.data, text_len, cudaMemcpyDeviceToDevice), "cudaMemcpy");
  const bool right = run_on(cuda_engine(), decryption, stream) == Status::ok;
  bool same = true;
  for (const std::size_t offset : {std::size_t{0}, four_gib - window_len / 2, text_len - 5000}) {
    const std::size_t len = std::min(window_len, text_len - offset);
    same = same && out.read(offset, len) == expected_text(pattern, offset, len);
  }
  failures += report("aes-128-gcm of more than 4 GiB: decrypt", right && same);

  must(cudaMemcpy(copy.data + text_len - 1, &flipped, 1, cudaMemcpyHostToDevice), "cudaMemcpy");
  decryption.in = copy.data;
  decryption.out = copy.data;
  const bool refused = run_on(cuda_engine(), decryption, stream) == Status::invalid_tag;
  const bool wiped = all_zero(copy.read(0, window_len)) && all_zero(copy.read(text_len - window_len, window_len)) &&
                     all_zero(copy.read(four_gib - 8, window_len / 16));
  return failures + report("aes-128-gcm of more than 4 GiB: last bit", refused && wiped);
}

}  // namespace

int test_large(Stream stream, const std::string& only) {
  if (!only.empty() && only != "aes-128-ctr" && only != "aes-128-gcm") return 0;
  const std::vector<std::uint8_t> pattern = make_pattern();
  const DeviceBytes in(text_len);
  const DeviceBytes out(text_len);
  fill(in, pattern);
  int failures = 0;
  if (only != "aes-128-gcm") failures += test_ctr(in, out, pattern, stream);
  if (only != "aes-128-ctr") failures += test_gcm(in, out, pattern, stream);
  return failures;
}
