// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the lab's variants: device memory between guards, random bytes, and one function a paper.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lab.hpp"

namespace warpcipher::lab::test {

using Bytes = std::vector<std::uint8_t>;

Bytes random_bytes(std::size_t len);

// Runs a variant, whose memory lies on the GPU when it needs one. out_len: bytes of the result. Throws Error, also when
// the bytes around the result were touched.
struct Call {
  std::string_view paper;
  std::string_view variant;
  Bytes key;
  Bytes iv = {};
  std::map<std::string, std::int64_t> parameters = {};
};
Bytes run(const Call& call, const Bytes& in, std::size_t out_len);

// Counts a case; prints and counts a failure when got differs from expected.
void expect_equal(const Bytes& expected, const Bytes& got, const std::string& what);

// Counts a case; a failure unless the call is refused with invalid_argument.
void expect_refusal(const Call& call, const Bytes& in, std::size_t out_len, const std::string& what);

// Whether this machine and build can run it.
bool can_run(const Variant& variant);

// One a paper, in the paper's file.
void test_billava2022();
void test_harrison2008();
void test_iwai2012();
void test_key_stream();
void test_quirem2013();
void test_yang2007();

}  // namespace warpcipher::lab::test
