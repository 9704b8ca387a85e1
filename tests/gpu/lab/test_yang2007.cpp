// SPDX-License-Identifier: Apache-2.0
// yang2007: every search finds the one key that fits, in any thread, iteration and place, and nothing where there is
// none; the texts are enciphered by the plain ciphers.
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

}  // namespace

void test_yang2007() {
  for (const Variant& variant : find_paper(paper).variants) {
    if (can_run(variant)) test_search(variant);
  }
}

}  // namespace warpcipher::lab::test
