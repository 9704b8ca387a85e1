// SPDX-License-Identifier: Apache-2.0
// harrison2008: CTR against the plain cipher, reads against those of the CPU, payloads of both modes, many lengths and
// keys against the plain cipher message by message, in both mappings.
#include <algorithm>
#include <cstring>

#include "cipher/aes_reference.hpp"
#include "core/bytes.hpp"
#include "harrison2008_payload.hpp"
#include "lab_test.hpp"

namespace warpcipher::lab::test {
namespace {

using harrison::Descriptor;
using harrison::Message;

constexpr std::string_view paper = "harrison2008";

Bytes ctr(const Bytes& key, const std::uint8_t* iv, const std::uint8_t* in, std::size_t len) {
  const aes::reference::Schedule schedule = aes::reference::expand_key(key.data(), key.size());
  Bytes counter(iv, iv + 16);
  Bytes out(len);
  for (std::size_t i = 0; i < len; i += 16) {
    aes::reference::encrypt_block(schedule, counter.data(), &out[i]);
    xor_bytes(&out[i], &out[i], &in[i], 16);
    add_be128(counter.data(), 1);
  }
  return out;
}

Bytes cbc(const Bytes& key, const std::uint8_t* iv, const std::uint8_t* in, std::size_t len) {
  const aes::reference::Schedule schedule = aes::reference::expand_key(key.data(), key.size());
  Bytes chain(iv, iv + 16);
  Bytes out(len);
  for (std::size_t i = 0; i < len; i += 16) {
    xor_bytes(chain.data(), chain.data(), &in[i], 16);
    aes::reference::encrypt_block(schedule, chain.data(), chain.data());
    std::memcpy(&out[i], chain.data(), 16);
  }
  return out;
}

void test_ctr(std::string_view variant) {
  Bytes wrapping(16, 0xff);
  wrapping[15] = 0xf0;
  Call call{paper, variant, random_bytes(16)};
  const std::string name(variant);
  for (const Bytes& iv : {random_bytes(16), wrapping}) {
    call.iv = iv;
    for (const std::size_t len : {0, 16, 4096, 4112, 12000}) {
      const Bytes in = random_bytes(len);
      expect_equal(ctr(call.key, iv.data(), in.data(), len), run(call, in, len), name + ", " + std::to_string(len));
    }
  }
  expect_refusal(call, Bytes(8), 8, name + ", half a block");
  expect_refusal({paper, variant, Bytes(32), Bytes(16)}, {}, 0, name + ", key of 32");
  expect_refusal({paper, variant, Bytes(16)}, {}, 0, name + ", no iv");
}

void test_reads(std::string_view variant) {
  const std::string name(variant);
  const std::int64_t pattern = name.ends_with("random") ? 2 : name == "read-constant-coherent" ? 0 : 1;
  const Bytes expected = run({paper, "read-cpu", {}, {}, {{"reads", 37}, {"pattern", pattern}}}, {}, 2048);
  expect_equal(expected, run({paper, variant, {}, {}, {{"reads", 37}}}, {}, 2048), name);
  expect_refusal({paper, variant, {}}, {}, 1000, name + ", part of a block of threads");
  expect_refusal({paper, variant, Bytes(16)}, {}, 1024, name + ", a key");
}

void test_strided() {
  for (const std::size_t blocks : {1, 3, 8}) {
    const Bytes in = random_bytes(16 * blocks * 512);
    Bytes expected(4 * 512);
    for (std::size_t i = 0; i < in.size(); ++i) expected[i / (16 * blocks) * 4 + i % 4] ^= in[i];
    const Call call{paper, "strided-reads", {}, {}, {{"blocks", static_cast<std::int64_t>(blocks)}}};
    expect_equal(expected, run(call, in, expected.size()), "strided-reads, " + std::to_string(blocks));
    expect_refusal(call, in, 4, "strided-reads, short result");
  }
}

struct Payload {
  Bytes keys;
  Bytes messages;
  Bytes text;
  Bytes expected;

  void add(std::uint32_t blocks, bool serial, std::uint32_t key, std::uint32_t padding = 0) {
    Message message{blocks, serial ? 1u : 0u, key, padding, {}};
    const Bytes iv = random_bytes(16);
    std::memcpy(message.iv, iv.data(), 16);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&message);
    messages.insert(messages.end(), bytes, bytes + sizeof message);
    Bytes its_text = random_bytes(16 * std::size_t{blocks});
    text.insert(text.end(), its_text.begin(), its_text.end() - (padding == 16 ? 16 : 0));
    std::fill(its_text.end() - padding, its_text.end(), static_cast<std::uint8_t>(padding));
    const Bytes its_key(keys.begin() + 16 * key, keys.begin() + 16 * key + 16);
    const Bytes result = (serial ? cbc : ctr)(its_key, iv.data(), its_text.data(), its_text.size());
    expected.insert(expected.end(), result.begin(), result.end());
  }
};

void test_payload(std::string_view variant) {
  const std::string name(variant);
  for (const int messages : {1, 2, 40}) {
    Payload payload;
    payload.keys = random_bytes(16 * 5);
    for (int i = 0; i < messages; ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      payload.add(messages == 1 ? 1 : 1 + number * 7 % 90, i % 3 == 1, number % 5, number % 17);
    }
    if (messages == 40) payload.add(1, true, 4, 16);  // of no text
    if (messages == 2) payload.add(1022, false, 3);   // as many threads as two full groups of two blocks of threads
    for (const std::int64_t multiprocessors : {1, 2, 3}) {
      Call call{paper, variant, payload.keys, payload.messages, {{"multiprocessors", multiprocessors}}};
      expect_equal(payload.expected, run(call, payload.text, payload.expected.size()),
                   name + ", " + std::to_string(messages) + " messages, " + std::to_string(multiprocessors));
      expect_refusal(call, Bytes(payload.text.size() + 16), payload.expected.size(), name + ", another length");
    }
  }
}

void test_serialisation() {
  Payload payload;
  payload.keys = random_bytes(16 * 3);
  std::copy_n(payload.keys.begin(), 16, payload.keys.begin() + 32);  // key 2 is key 0
  payload.add(5, false, 1);
  payload.add(9, true, 0, 16);
  payload.add(3, false, 2, 7);
  const Bytes streams =
      run({paper, "serialise", payload.keys, payload.messages}, {}, 3 * sizeof(Descriptor) + 2 * 176 + 3 * 4);
  Bytes fields(3 * 24);
  for (std::size_t i = 0; i < 3; ++i) std::copy_n(&streams[sizeof(Descriptor) * i], 24, &fields[24 * i]);
  const std::uint32_t expected[] = {0, 0, 5, 0, 1, 0, 5, 5, 9, 1, 0, 16, 13, 14, 3, 0, 0, 7};
  const std::uint32_t starts[] = {0, 5, 6};
  const auto bytes_of = [](const auto& words) {
    const auto* const first = reinterpret_cast<const std::uint8_t*>(words);
    return Bytes(first, first + sizeof words);
  };
  expect_equal(bytes_of(expected), fields, "descriptors");
  expect_equal(bytes_of(starts), {streams.end() - 12, streams.end()}, "logical thread index");
  const auto schedule = aes::reference::expand_key(&payload.keys[16], 16);
  expect_equal(Bytes(schedule.bytes, schedule.bytes + 176), {&streams[120 + 176], &streams[120 + 176] + 176},
               "schedule");
  Bytes wrong = payload.messages;
  wrong[8] = 3;
  expect_refusal({paper, "serialise", payload.keys, wrong}, {}, 0, "a key that there is not");
  wrong = payload.messages;
  wrong[12] = 17;
  expect_refusal({paper, "serialise", payload.keys, wrong}, {}, 0, "padding of more than a block");
  expect_refusal({paper, "serialise", payload.keys, Bytes(32)}, {}, 0, "a message of no blocks");
  expect_refusal({paper, "serialise", payload.keys, Bytes(33, 1)}, {}, 0, "a part of a message");
  expect_refusal({paper, "serialise", Bytes(17), payload.messages}, {}, 0, "a part of a key");
}

}  // namespace

void test_harrison2008() {
  for (const Variant& variant : find_paper(paper).variants) {
    if (!can_run(variant)) continue;
    if (variant.name.starts_with("ctr-")) test_ctr(variant.name);
    if (variant.name.starts_with("read-") && variant.needs_gpu) test_reads(variant.name);
    if (variant.name.starts_with("payload-")) test_payload(variant.name);
  }
  test_strided();
  test_serialisation();
}

}  // namespace warpcipher::lab::test
