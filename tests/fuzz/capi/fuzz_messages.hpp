// SPDX-License-Identifier: Apache-2.0
// Random keys and messages for the harnesses of the C ABI, and what must hold of every result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz_input.hpp"
#include "warpcipher.h"

#define REQUIRE(condition)                                                           \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

struct KeyFree {
  void operator()(wc_key* key) const { wc_key_free(key); }
};
using KeyHandle = std::unique_ptr<wc_key, KeyFree>;

inline constexpr std::uint8_t paint = 0xa5;

inline bool all_are(const Buffer& buffer, std::uint8_t value) {
  return std::all_of(buffer.begin(), buffer.end(), [&](std::uint8_t byte) { return byte == value; });
}

// A null pointer for some empty buffers, and for a few that are not: those must be refused.
inline bool is_null(Input& input, const Buffer& buffer) { return input.chance(buffer.size() == 0 ? 2 : 200); }
inline const void* pointer(Input& input, const Buffer& buffer) {
  return is_null(input, buffer) ? nullptr : buffer.data();
}
inline void* pointer(Input& input, Buffer& buffer) { return is_null(input, buffer) ? nullptr : buffer.data(); }

// A key, and what its algorithm takes; or no key, and an algorithm that takes nothing.
struct AnyKey {
  KeyHandle handle;
  wc_algorithm_info info;
};

inline AnyKey any_key(Input& input) {
  wc_algorithm_info info = {};
  const std::size_t index = input.below(wc_algorithm_count()) + (input.chance(50) ? wc_algorithm_count() : 0);
  const wc_status listed = wc_algorithm_at(input.chance(50) ? nullptr : &info, index);
  REQUIRE(listed == WC_OK || listed == WC_INVALID_ARGUMENT);
  if (listed != WC_OK) info = {};
  const char* const names[] = {info.name, "aes-128-", "", "AES-128-GCM", "aes-512-gcm-siv", nullptr};
  const char* name = names[input.chance(40) ? input.below(std::size(names)) : 0];
  const std::size_t key_len = input.chance(40) ? input.below(80) : info.key_len;
  const Buffer key = input.take(key_len);
  wc_key* made = nullptr;
  const wc_status status = wc_key_new(input.chance(100) ? nullptr : &made, name, key.data(), key.size());
  REQUIRE(status == WC_OK || status == WC_INVALID_ARGUMENT);
  REQUIRE((made != nullptr) == (status == WC_OK));
  return {KeyHandle(made), info};
}

// An engine of the host, or a name that is none. CUDA is left to the GPU tests.
inline const char* any_engine(Input& input) {
  const char* const names[] = {"cpu", "reference", "cpu", "auto", nullptr, "", "gpu", "cpu "};
  return names[input.below(input.chance(20) ? std::size(names) : 3)];
}

inline std::size_t any_len(Input& input) {
  const std::size_t interesting[] = {0, 1, 7, 8, 15, 16, 17, 24, 32, 33, 48, 64, 4096, 4097};
  return input.chance(2) ? interesting[input.below(std::size(interesting))] : input.below(200);
}

// Mostly what the algorithm takes, so that later checks are reached too.
inline std::size_t any_text_len(Input& input, const wc_algorithm_info& info, wc_padding padding) {
  const std::size_t len = any_len(input);
  if (input.chance(20)) return len;
  if (info.whole_blocks && padding == WC_PADDING_NONE) return len - len % info.block_len;
  return info.iv_rule == WC_IV_BLOCK && info.takes_padding == 0 ? std::max(len, info.block_len) : len;
}

inline std::size_t any_iv_len(Input& input, const wc_algorithm_info& info) {
  if (input.chance(30)) return input.below(40);
  if (info.iv_rule == WC_IV_ANY) return input.chance(4) ? 1 + input.below(20) : 12;
  return info.iv_len;
}

inline std::size_t any_tag_len(Input& input, const wc_algorithm_info& info) {
  if (input.chance(30)) return input.below(40);
  return info.is_aead ? 16 - (info.iv_rule == WC_IV_ANY ? input.below(5) : 0) : 0;
}

inline std::size_t any_aad_len(Input& input, const wc_algorithm_info& info) {
  return info.is_aead || input.chance(30) ? input.below(40) : 0;
}

inline wc_padding any_padding(Input& input, const wc_algorithm_info& info) {
  if (input.chance(60)) return static_cast<wc_padding>(input.byte());
  return info.takes_padding != 0 && input.chance(2) ? WC_PADDING_PKCS7 : WC_PADDING_NONE;
}

inline wc_direction any_direction(Input& input) {
  return static_cast<wc_direction>(input.chance(60) ? input.byte() : input.below(2));
}

// A length that no memory has: what an unsigned subtraction below zero gives, or a little more than the most there is.
inline std::size_t impossible_len(Input& input) {
  const std::size_t begins[] = {(std::size_t{1} << 56) + 1, std::size_t{1} << 63, SIZE_MAX - 64};
  return begins[input.below(std::size(begins))] + input.below(65);
}

// The memory of one message.
struct Parts {
  Buffer in, out, iv, aad, tag;
  bool in_place = false;
  bool encrypts = false;
};

inline std::vector<AnyKey> any_keys(Input& input) {
  std::vector<AnyKey> keys;
  for (std::size_t i = 1 + input.below(3); i > 0; --i) keys.push_back(any_key(input));
  return keys;
}

inline wc_message any_message(Input& input, const std::vector<AnyKey>& keys, Parts& p) {
  const AnyKey& key = keys[input.below(keys.size())];
  wc_message m = {};
  m.key = key.handle.get();
  m.direction = any_direction(input);
  m.padding = any_padding(input, key.info);
  p.in = input.take(any_text_len(input, key.info, m.padding));
  p.in_place = input.chance(4);
  p.out = Buffer(input.chance(20) ? any_len(input) : p.in.size() + 16 + input.below(20), paint);
  p.iv = input.take(any_iv_len(input, key.info));
  p.aad = input.take(any_aad_len(input, key.info));
  p.tag = Buffer(any_tag_len(input, key.info), paint);
  // Device memory is a promise about pointers that the harness cannot keep; the reference and cpu engines refuse it.
  m.memory = WC_MEMORY_HOST;
  m.in = pointer(input, p.in);
  m.in_len = p.in.size();
  m.out = p.in_place ? const_cast<void*>(m.in) : pointer(input, p.out);
  m.out_len = p.in_place ? p.in.size() : p.out.size();
  m.iv = pointer(input, p.iv);
  m.iv_len = p.iv.size();
  m.aad = pointer(input, p.aad);
  m.aad_len = p.aad.size();
  m.tag = pointer(input, p.tag);
  m.tag_len = p.tag.size();
  p.encrypts = m.direction == WC_ENCRYPT;
  return m;
}

inline bool is_refused(wc_status status) {
  return status != WC_OK && status != WC_INVALID_TAG && status != WC_INVALID_PADDING;
}

inline void check_untouched(const Parts& p) { REQUIRE(all_are(p.out, paint) && all_are(p.tag, paint)); }

inline void check_result(const wc_result& result, const wc_message& m, const Parts& p) {
  REQUIRE(result.written <= m.out_len);
  if (result.status == WC_OK) return;
  REQUIRE(result.written == 0 && !p.encrypts);
  const auto* out = static_cast<const std::uint8_t*>(m.out);
  REQUIRE(std::all_of(out, out + m.in_len, [](std::uint8_t byte) { return byte == 0; }));
}

void fuzz_batch(Input& input);
void fuzz_lists(Input& input);
void fuzz_lengths(Input& input);
