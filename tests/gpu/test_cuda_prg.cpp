// SPDX-License-Identifier: Apache-2.0
// Generators, trees and point functions on a GPU against the definition: the same bytes for every generator and group,
// at odd counts, with passes of one level and of several. A plain program, as test_cuda_random is. Exits 1 when
// anything differs. --few: a kernel of each kind, for sanitizers.
#include <algorithm>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/stream_buffer.hpp"
#include "engine/cuda/runtime/stream_pool.hpp"
#include "engine/device_engine.hpp"
#include "force.hpp"
#include "prg/prg.hpp"

namespace {

using namespace warpcipher;
using namespace warpcipher::prg;
using warpcipher::cuda::check, warpcipher::cuda::native, warpcipher::prg::Group;
using Bytes = std::vector<std::uint8_t>;

constexpr Generator generators[] = {Generator::aes128_mmo, Generator::aes128_keyed, Generator::chacha20,
                                    Generator::chacha12,   Generator::chacha8,      Generator::aes128_half};
constexpr Generator few_generators[] = {Generator::aes128_mmo, Generator::aes128_half, Generator::chacha8};
constexpr Group groups[] = {Group::gf2, Group::u32, Group::u64};
bool few = false;

Bytes make_bytes(std::size_t size, std::uint32_t state) {
  Bytes bytes(size);
  for (auto& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

class DeviceBytes {
 public:
  explicit DeviceBytes(const Bytes& content) : size_(content.size()), buffer_(content.size() + 16, stream_) {
    check(cudaMemcpyAsync(buffer_.data(), content.data(), size_, cudaMemcpyHostToDevice, native(stream_)), "send");
    check(cudaMemsetAsync(buffer_.data() + size_, 0xa5, 16, native(stream_)), "paint");
  }

  std::span<std::uint8_t> span() const { return {buffer_.data(), size_}; }
  warpcipher::Stream stream() const { return stream_; }

  // Throws where what follows the content was written to.
  Bytes content() const {
    Bytes bytes(size_ + 16);
    check(cudaMemcpyAsync(bytes.data(), buffer_.data(), bytes.size(), cudaMemcpyDeviceToHost, native(stream_)),
          "fetch");
    check(cudaStreamSynchronize(native(stream_)), "wait");
    if (std::count(bytes.end() - 16, bytes.end(), 0xa5) != 16) throw std::runtime_error("written past the end");
    bytes.resize(size_);
    return bytes;
  }

 private:
  warpcipher::Stream stream_ = warpcipher::cuda::take_stream();
  std::size_t size_;
  warpcipher::cuda::StreamBuffer buffer_;
};

// Runs call(input, output, place) in both kinds of memory; `faster`: the host's threads, which other tests compare with
// the definition.
template <class Call>
void compare(const std::string& what, const Bytes& input, std::size_t size, bool faster, const Call& call) {
  Bytes expected(size, 1);
  call(std::span<const std::uint8_t>(input), std::span<std::uint8_t>(expected),
       Place{Memory::host, nullptr, faster ? "cpu" : "reference"});
  const DeviceBytes output(Bytes(size, 1)), given(input);
  check(cudaStreamSynchronize(native(given.stream())), "wait");
  call(std::span<const std::uint8_t>(given.span()), output.span(), Place{Memory::device, output.stream(), "cuda"});
  if (output.content() != expected) throw std::runtime_error(what + " differs");
}

void test_expand(Generator generator) {
  for (const std::size_t count : {1, 15, 16, 17, 256, 1025, 256 * 40 + 3}) {
    for (int children = 1; children <= most_children; ++children) {
      compare("expand", make_bytes(16 * count, 1), 16 * count * static_cast<std::size_t>(children), true,
              [&](auto in, auto out, const Place& place) { expand(generator, in, children, out, place); });
    }
  }
}

void test_tree(Generator generator) {
  const std::size_t lanes = std::size_t{1024} * warpcipher::cuda::current_device().multiprocessors;
  const auto run = [&](std::size_t count, int depth) {
    compare("tree of depth " + std::to_string(depth), make_bytes(16 * count, 2), 16 * count << depth, true,
            [&](auto in, auto out, const Place& place) { tree(generator, in, depth, out, place); });
  };
  for (int depth = 0; depth < 4; ++depth) run(1, depth);
  run(33, 5);
  few ? run(lanes / 4 + 7, 3) : run(lanes + 7, 4);  // several levels in a pass, and lanes without nodes
}

struct KeyPair {
  Bytes keys[2];

  KeyPair(const Domain& domain, const std::vector<std::uint64_t>& points) {
    for (auto& each : keys) each.resize(domain.record_len() * points.size());
    const std::vector<std::uint64_t> values(points.size(), 1);
    generate(domain, points, values, make_bytes(32 * points.size(), 3), keys[0], keys[1]);
    const RecordLayout layout(domain);
    for (std::size_t k = 0; k < points.size() && !layout.correlated; ++k) {  // as in keys of Google's library
      keys[1][domain.record_len() * k + layout.root_bit()] = k % 2;
    }
  }
};

void test_points(Generator generator, Group group) {
  const std::size_t lanes = std::size_t{1024} * warpcipher::cuda::current_device().multiprocessors;
  for (const int bits : {0, 1, 2, 3, 4, 7, 8, 9, 10, 0x100}) {
    if (few && bits != 3 && bits != 9) continue;
    // The last: so many keys that a pass takes several levels.
    const bool many = bits == 0x100;
    const int own_bits = many ? (group == Group::gf2 ? 10 : group == Group::u32 ? 5 : 4) : bits;
    const Domain domain{generator, group, own_bits};
    std::vector<std::uint64_t> points(many ? lanes / 2 + 5 : 3);
    for (std::size_t i = 0; i < points.size(); ++i) points[i] = 5 * i & ((std::uint64_t{1} << own_bits) - 1);
    const KeyPair pair(domain, points);
    for (int party = 0; party < 2; ++party) {
      const PointKeys keys{domain, party, pair.keys[party]};
      const std::string what = "of " + std::to_string(own_bits) + " bits";
      compare("evaluate_all " + what, Bytes(16), domain.share_len() * points.size(), true,
              [&](auto, auto out, const Place& place) { evaluate_all(keys, out, place); });
      if (many) continue;
      compare("evaluate " + what, Bytes(16), domain.value_len() * points.size(), true,
              [&](auto, auto out, const Place& place) { evaluate(keys, points, false, out, place); });
      for (const std::size_t record_len : {8, 16, 24, 256}) {
        const std::size_t records = bits == 0 ? 1 : (std::size_t{1} << bits) - 1;
        compare("answer " + what, make_bytes(records * record_len, 4), record_len * points.size(), true,
                [&](auto in, auto out, const Place& place) { answer(keys, in, record_len, out, place); });
      }
    }
  }
  const Domain domain{generator, group, 63};
  const std::vector<std::uint64_t> points = {(std::uint64_t{1} << 63) - 1, 0, std::uint64_t{5} << 33};
  const KeyPair pair(domain, points);
  compare("evaluate of 63 bits", Bytes(16), domain.value_len() * 9, false,
          [&](auto, auto out, const Place& place) { evaluate({domain, 1, pair.keys[1]}, points, true, out, place); });
}

// More keys than the sum of a table takes at once, records of odd length, more than one slice of them.
void test_answers() {
  const Domain domain{Generator::aes128_mmo, Group::gf2, 12};
  std::vector<std::uint64_t> points(70);
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = 57 * i;
  const KeyPair pair(domain, points);
  for (const std::size_t record_len : {1, 13, 36, 624}) {
    if (few && record_len < 36) continue;
    compare(
        "answer of many keys", make_bytes(4001 * record_len, 6), record_len * points.size(), true,
        [&](auto in, auto out, const Place& place) { answer({domain, 0, pair.keys[0]}, in, record_len, out, place); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  few = argc == 2 && std::string_view(argv[1]) == "--few";
  try {
    for (const Generator generator : few ? std::span<const Generator>(few_generators) : generators) {
      test_expand(generator);
      test_tree(generator);
      for (const prg::Group group : groups) test_points(generator, group);
    }
    test_answers();
    conformance::force("text", "hybrid");
    test_expand(Generator::aes128_mmo);
    conformance::force("text", nullptr);
    conformance::force("tables", "64");
    for (const Generator generator : {Generator::aes128_mmo, Generator::aes128_half}) {
      test_expand(generator);
      if (few) continue;
      test_tree(generator);
      test_points(generator, prg::Group::u32);
    }
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
  std::printf("generators, trees, point functions: all equal\n");
  return 0;
}
