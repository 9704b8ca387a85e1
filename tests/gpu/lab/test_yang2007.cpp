// SPDX-License-Identifier: Apache-2.0
// yang2007: every search finds the one key that fits, in any thread, iteration and place, and nothing where there is
// none; the texts are enciphered by the plain ciphers. Decryption by blocks against the plain cipher.
#include <algorithm>
#include <cstring>

#include "cipher/aes_reference.hpp"
#include "cipher/des.hpp"
#include "lab_test.hpp"
#include "yang2007_search.hpp"

namespace warpcipher::lab::test {
namespace {

constexpr std::string_view paper = "yang2007";

void put_bit(Bytes& key, std::size_t byte, unsigned bit, std::uint64_t value) {
  key[byte] = static_cast<std::uint8_t>((key[byte] & ~(1u << bit)) | (value & 1) << bit);
}

// The key of a number's low 41 bits; the others stay.
Bytes key_of(Bytes key, std::uint64_t number) {
  for (unsigned j = 0; j < yang::fixed_at; ++j) {
    if (key.size() == 8) {
      put_bit(key, j / 7, j % 7 + 1, number >> j);
    } else {
      put_bit(key, j / 8, j % 8, number >> j);
    }
  }
  return key;
}

Bytes encrypted(const Bytes& key, const Bytes& plaintext) {
  Bytes out(plaintext.size());
  if (key.size() == 8) {
    des::reference::encrypt_block(des::reference::expand_key(key.data(), 8), plaintext.data(), out.data());
  } else {
    aes::reference::encrypt_block(aes::reference::expand_key(key.data(), 16), plaintext.data(), out.data());
  }
  return out;
}

void test_search(const Variant& variant) {
  const std::string name(variant.name);
  const bool des = name.starts_with("des");
  const bool in_advance = name == "aes-in-advance";
  const std::size_t threads = variant.needs_gpu ? 128 : 3;
  constexpr std::uint32_t iterations = 3;
  struct Place {
    std::uint32_t thread, iteration, key;
  };
  for (const Place& place : {Place{0, 0, 0}, {2, 1, 31}, {static_cast<std::uint32_t>(threads) - 1, 2, 13}}) {
    const Bytes base = random_bytes(des ? 8 : 16);
    const std::uint64_t number = std::uint64_t{place.thread} << yang::thread_at |
                                 std::uint64_t{in_advance ? 0 : place.iteration} << yang::iteration_at | place.key;
    const Bytes plaintext = random_bytes(des ? 8 : 16);
    Bytes text = plaintext;
    if (in_advance) text[0] = static_cast<std::uint8_t>(text[0] ^ place.iteration);
    const Bytes ciphertext = encrypted(key_of(base, number), text);
    Call call{paper, variant.name, base, plaintext, {{"iterations", iterations}}};
    call.iv.insert(call.iv.end(), ciphertext.begin(), ciphertext.end());
    if (in_advance) call.parameters["threads"] = static_cast<std::int64_t>(threads);
    std::vector<yang::Match> expected(threads);
    expected[place.thread] = {place.iteration, 1u << place.key};
    Bytes bytes(sizeof(yang::Match) * threads);
    std::memcpy(bytes.data(), expected.data(), bytes.size());
    expect_equal(bytes, run(call, {}, bytes.size()), name + ", thread " + std::to_string(place.thread));
    call.iv.back() ^= 1;
    expect_equal(Bytes(bytes.size()), run(call, {}, bytes.size()), name + ", no key");
    expect_refusal(call, {}, bytes.size() - 1, name + ", part of a match");
    expect_refusal(call, Bytes(16), bytes.size(), name + ", a text");
    call.iv.pop_back();
    expect_refusal(call, {}, bytes.size(), name + ", a short ciphertext");
  }
}

void test_block(std::string_view variant) {
  const std::string name(variant);
  const Call call{paper, variant, random_bytes(16)};
  const aes::reference::Schedule schedule = aes::reference::expand_key(call.key.data(), 16);
  for (const std::size_t len : {0, 16, 4096, 4112}) {
    const Bytes in = random_bytes(len);
    Bytes expected(len);
    for (std::size_t i = 0; i < len; i += 16) aes::reference::decrypt_block(schedule, &in[i], &expected[i]);
    expect_equal(expected, run(call, in, len), name + ", " + std::to_string(len));
  }
  expect_refusal(call, Bytes(8), 8, name + ", half a block");
  expect_refusal({paper, variant, Bytes(32)}, {}, 0, name + ", key of 32");
}

void test_xors(std::string_view variant) {
  const std::string name(variant);
  constexpr std::size_t threads = 512;
  Bytes expected(4 * threads);
  for (std::size_t t = 0; t < threads; ++t) {
    for (std::size_t i = 0; i < 9; ++i) {
      expected[4 * t] = static_cast<std::uint8_t>((i == 0 ? t : expected[4 * t]) ^ (t / 256 + 37 * i));
    }
  }
  expect_equal(expected, run({paper, variant, {}, {}, {{"xors", 9}}}, {}, 4 * threads), name);
  expect_refusal({paper, variant, {}}, {}, 1000, name + ", part of a block of threads");
  expect_refusal({paper, variant, Bytes(16)}, {}, 1024, name + ", a key");
}

}  // namespace

void test_yang2007() {
  for (const Variant& variant : find_paper(paper).variants) {
    if (!can_run(variant)) continue;
    if (variant.name.starts_with("block-")) {
      test_block(variant.name);
    } else if (variant.name.starts_with("xor-")) {
      test_xors(variant.name);
    } else {
      test_search(variant);
    }
  }
}

}  // namespace warpcipher::lab::test
