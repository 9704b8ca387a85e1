// SPDX-License-Identifier: Apache-2.0
#include "gcm_siv.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "columnar_batch.hpp"
#include "engine/device_engine.hpp"
#include "force.hpp"
#include "message/plan.hpp"

namespace conformance {
namespace {

std::vector<std::uint8_t> from_hex(const std::string& text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// RFC 8452, appendix C: key, nonce, AAD, text, and text and tag that must come out. The first counters of the last two
// (C.3) wrap.
struct KnownAnswer {
  const char* key;
  const char* nonce;
  const char* aad;
  const char* text;
  const char* sealed;
};
constexpr KnownAnswer known_answers[] = {
    {"01000000000000000000000000000000", "030000000000000000000000", "", "", "dc20e2d83f25705bb49e439eca56de25"},
    {"01000000000000000000000000000000", "030000000000000000000000", "", "0100000000000000",
     "b5d839330ac7b786578782fff6013b815b287c22493a364c"},
    {"01000000000000000000000000000000", "030000000000000000000000", "01", "0200000000000000",
     "1e6daba35669f4273b0a1a2560969cdf790d99759abd1508"},
    {"0100000000000000000000000000000000000000000000000000000000000000", "030000000000000000000000", "", "",
     "07f5f4169bbf55a8400cd47ea6fd400f"},
    {"0100000000000000000000000000000000000000000000000000000000000000", "030000000000000000000000", "",
     "0100000000000000", "c2ef328e5c71c83b843122130f7364b761e0b97427e3df28"},
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "",
     "000000000000000000000000000000004db923dc793ee6497c76dcc03a98e108",
     "f3f80f2cf0cb2dd9c5984fcda908456cc537703b5ba70324a6793a7bf218d3eaffffffff000000000000000000000000"},
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "",
     "eb3640277c7ffd1303c7a542d02d3e4c0000000000000000",
     "18ce4f0b8cb4d0cac65fea8f79257b20888e53e72299e56dffffffff000000000000000000000000"},
};

int test_known_answers(const Algorithm& algorithm, Stream stream) {
  int failures = 0;
  for (const KnownAnswer& known : known_answers) {
    const std::vector<std::uint8_t> key_bytes = from_hex(known.key), nonce = from_hex(known.nonce);
    const std::vector<std::uint8_t> aad = from_hex(known.aad), text = from_hex(known.text);
    if (key_bytes.size() != algorithm.key_len()) continue;
    const Key key(algorithm, key_bytes);
    void* device = nullptr;
    must(cudaMalloc(&device, 256), "cudaMalloc");
    must(cudaMemcpy(device, text.data(), text.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    auto* const place = static_cast<std::uint8_t*>(device);
    Message m;
    m.key = &key;
    m.memory = Memory::device;
    m.in = m.out = place;
    m.in_len = m.out_len = text.size();
    m.iv = nonce.data();
    m.iv_len = nonce.size();
    m.aad = aad.data();
    m.aad_len = aad.size();
    m.tag = place + text.size();
    m.tag_len = 16;
    cuda_engine().run_one(m, stream);
    must(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
    std::vector<std::uint8_t> sealed(text.size() + 16), opened(text.size());
    must(cudaMemcpy(sealed.data(), device, sealed.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    m.direction = Direction::decrypt;
    const Status status = cuda_engine().run_one(m, stream);
    must(cudaMemcpy(opened.data(), device, opened.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(device), "cudaFree");
    if (sealed == from_hex(known.sealed) && status == Status::ok && opened == text) continue;
    std::printf("  DIFFERS %s: RFC 8452, text of %zu bytes\n", std::string(algorithm.name).c_str(), text.size());
    ++failures;
  }
  return failures;
}

// A text that is decrypted with a first counter of the test's choice.
Case counted_case(const Algorithm& algorithm, std::uint32_t first, std::size_t len) {
  Case c = random_case(algorithm, Direction::decrypt, len);
  c.bad_tag = false;
  c.computes_tag = true;
  c.aad_len = random_below(40);
  c.key = &random_key(algorithm);
  c.iv = random_bytes(28);
  for (unsigned i = 0; i < 4; ++i) c.iv[12 + i] = static_cast<std::uint8_t>(first >> 8 * i);
  if (random_below(4) != 0) c.in_shift = c.out_shift = 16 * random_below(2);
  return c;
}

// Counters that begin anywhere in a tile, and wrap in the first tile or in a later one; texts that end around the edges
// of tiles. most: bytes of a text.
void test_counters(const Algorithm& algorithm, std::size_t most, const Options& options, Tally& tally) {
  constexpr std::uint32_t tile = 256;
  for (const std::uint32_t before_wrap : {0u, tile, 3 * tile}) {
    Batch together;
    for (const std::uint32_t last : {0, 1, 31, 32, 63, 127, 128, 160, 223, 254, 255}) {
      const std::uint32_t first = random_below(3) == 0 ? (static_cast<std::uint32_t>(generator()) & ~0xffu) + last
                                                       : 0u - before_wrap - tile + last;
      const std::size_t around = 16 * (tile * (1 + random_below(3)) - last) + random_below(16 * 140);
      const std::size_t len = around < 16 * 70 ? random_below(16 * 70) : around - 16 * 70;
      const Case c = counted_case(algorithm, first, std::min(len, most));
      if (last % 32 == 31 && sampled(options)) tally.run_alone(c);
      together.add(c);
    }
    tally.run(together);
  }
}

// A batch may repeat a nonce.
int test_repeated_nonces(const Algorithm& algorithm, Stream stream) {
  int failures = 0;
  for (const bool on_device : {false, true}) {
    const Shape shape{Direction::encrypt, 40, 90, 2, true, on_device};
    ColumnarBatch batch(algorithm, shape);
    batch.key_index[33] = batch.key_index[3];
    batch.repeat_iv(3, 33);
    failures += test_batch(batch, algorithm, shape, stream);
  }
  return failures;
}

// The GPU reads given tags before the host knows that a batch is wrong: none of a wrong message.
int test_wrong_place(const Algorithm& algorithm, Stream stream) {
  int failures = 0;
  for (const bool on_device : {false, true}) {
    ColumnarBatch batch(algorithm, Shape{Direction::decrypt, 40, 90, 2, true, on_device, true});
    batch.in_offsets[33] = std::uint64_t{1} << 40;
    failures += test_refusal(batch, "message 33: in range", stream);
  }
  return failures;
}

}  // namespace

int test_gcm_siv(const Algorithm& algorithm, const Options& options, Stream stream) {
  Tally tally(stream);
  int failures = test_known_answers(algorithm, stream);
  for (const char* kernel : {"tiles", "hybrid", "packed"}) {
    force("counter", kernel);
    test_counters(algorithm, kernel[0] == 'p' ? 16 * 511 : 16 * 900, options, tally);
  }
  force("counter", nullptr);
  force("columns", "device");
  failures += test_repeated_nonces(algorithm, stream) + test_wrong_place(algorithm, stream);
  force("columns", nullptr);
  if (failures != 0) std::printf("  DIFFERS %s: %d cases\n", std::string(algorithm.name).c_str(), failures);
  return failures + tally.report(algorithm.name, "counters of GCM-SIV");
}

}  // namespace conformance
