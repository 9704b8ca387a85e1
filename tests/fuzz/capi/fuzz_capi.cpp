// SPDX-License-Identifier: Apache-2.0
// Fuzzes the C ABI's argument checks: whatever the arguments, no call may read or write outside the memory that they
// describe, write anything when it refuses them, or release a text whose tag does not match. Run it under ASan and
// UBSan: each buffer is an allocation of its own, exactly as long as the call is told.
//
// The harness never tells a lie that C cannot check (a length longer than its memory, but one that no memory has; a key
// that was freed).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz_input.hpp"
#include "warpcipher.h"

namespace {

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

constexpr std::uint8_t paint = 0xa5;

bool all_are(const Buffer& buffer, std::uint8_t value) {
  return std::all_of(buffer.begin(), buffer.end(), [&](std::uint8_t byte) { return byte == value; });
}

// A null pointer for some empty buffers, and none for the rest.
const void* pointer(Input& input, const Buffer& buffer) {
  return buffer.size() == 0 && input.chance(2) ? nullptr : buffer.data();
}
void* pointer(Input& input, Buffer& buffer) { return buffer.size() == 0 && input.chance(2) ? nullptr : buffer.data(); }

// A key, and what its algorithm takes; or no key, and an algorithm that takes nothing.
struct AnyKey {
  KeyHandle handle;
  wc_algorithm_info info;
};

AnyKey any_key(Input& input) {
  wc_algorithm_info info = {};
  const std::size_t index = input.below(wc_algorithm_count()) + (input.chance(50) ? wc_algorithm_count() : 0);
  const wc_status listed = wc_algorithm_at(input.chance(50) ? nullptr : &info, index);
  REQUIRE(listed == WC_OK || listed == WC_INVALID_ARGUMENT);
  if (listed != WC_OK) info = {};
  const char* const names[] = {info.name, "aes-128-", "", "AES-128-GCM", "aes-256-gcm-siv", nullptr};
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
const char* any_engine(Input& input) {
  const char* const names[] = {"cpu", "reference", "cpu", "auto", nullptr, "", "gpu", "cpu "};
  return names[input.below(input.chance(20) ? std::size(names) : 3)];
}

std::size_t any_len(Input& input) {
  const std::size_t interesting[] = {0, 1, 7, 8, 15, 16, 17, 24, 32, 33, 48, 64, 4096, 4097};
  return input.chance(2) ? interesting[input.below(std::size(interesting))] : input.below(200);
}

// Mostly what the algorithm takes, so that the checks behind are reached too.
std::size_t any_text_len(Input& input, const wc_algorithm_info& info, wc_padding padding) {
  const std::size_t len = any_len(input);
  if (input.chance(20)) return len;
  if (info.whole_blocks && padding == WC_PADDING_NONE) return len - len % info.block_len;
  return info.iv_rule == WC_IV_BLOCK && info.takes_padding == 0 ? std::max(len, info.block_len) : len;
}

std::size_t any_iv_len(Input& input, const wc_algorithm_info& info) {
  if (input.chance(30)) return input.below(40);
  if (info.iv_rule == WC_IV_ANY) return input.chance(4) ? 1 + input.below(20) : 12;
  return info.iv_rule == WC_IV_BLOCK ? info.block_len : 0;
}

std::size_t any_tag_len(Input& input, const wc_algorithm_info& info) {
  if (input.chance(30)) return input.below(40);
  return info.is_aead ? 16 - input.below(5) : 0;
}

std::size_t any_aad_len(Input& input, const wc_algorithm_info& info) {
  return info.is_aead || input.chance(30) ? input.below(40) : 0;
}

wc_padding any_padding(Input& input, const wc_algorithm_info& info) {
  if (input.chance(60)) return static_cast<wc_padding>(input.byte());
  return info.takes_padding != 0 && input.chance(2) ? WC_PADDING_PKCS7 : WC_PADDING_NONE;
}

wc_direction any_direction(Input& input) {
  return static_cast<wc_direction>(input.chance(60) ? input.byte() : input.below(2));
}

// A length that no memory has: what an unsigned subtraction below zero gives, or a little more than the most there is.
std::size_t impossible_len(Input& input) {
  const std::size_t begins[] = {(std::size_t{1} << 56) + 1, std::size_t{1} << 63, SIZE_MAX - 64};
  return begins[input.below(std::size(begins))] + input.below(65);
}

// The memory of one message.
struct Parts {
  Buffer in, out, iv, aad, tag;
  bool in_place = false;
  bool encrypts = false;
};

void fuzz_run(Input& input) {
  std::vector<AnyKey> keys;
  for (std::size_t i = 1 + input.below(3); i > 0; --i) keys.push_back(any_key(input));
  const std::size_t count = input.below(5);
  std::vector<Parts> parts(count);
  std::vector<wc_message> messages(count);
  for (std::size_t i = 0; i < count; ++i) {
    const AnyKey& key = keys[input.below(keys.size())];
    wc_message& m = messages[i];
    m = {};
    m.key = key.handle.get();
    m.direction = any_direction(input);
    m.padding = any_padding(input, key.info);
    Parts& p = parts[i];
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
  }
  const bool impossible = count != 0 && input.chance(10);
  if (impossible) {
    std::size_t wc_message::*const lengths[] = {&wc_message::in_len, &wc_message::out_len, &wc_message::iv_len,
                                                &wc_message::aad_len, &wc_message::tag_len};
    wc_message& m = messages[input.below(count)];
    m.*lengths[input.below(std::size(lengths))] = impossible_len(input);
  }
  std::vector<wc_result> results(count, wc_result{WC_ENGINE_FAILURE, SIZE_MAX});
  const wc_status status = wc_run(any_engine(input), count == 0 && input.chance(2) ? nullptr : results.data(),
                                  messages.data(), count, nullptr);
  REQUIRE(wc_last_error() != nullptr && std::strlen(wc_status_text(status)) != 0);
  const bool refused = status != WC_OK && status != WC_INVALID_TAG && status != WC_INVALID_PADDING;
  REQUIRE(refused || !impossible);
  for (std::size_t i = 0; i < count; ++i) {
    const Parts& p = parts[i];
    if (refused) {
      REQUIRE(results[i].written == SIZE_MAX);
      REQUIRE(all_are(p.out, paint) && all_are(p.tag, paint));
      continue;
    }
    REQUIRE(results[i].written <= messages[i].out_len);
    if (results[i].status == WC_OK) continue;
    REQUIRE(results[i].written == 0 && !p.encrypts);
    const auto* out = static_cast<const std::uint8_t*>(messages[i].out);
    REQUIRE(std::all_of(out, out + messages[i].in_len, [](std::uint8_t byte) { return byte == 0; }));
  }
  if (status != WC_OK || count == 0) return;
  // What was encrypted decrypts again, and a tag with one bit changed does not.
  for (std::size_t i = 0; i < count; ++i) {
    if (!parts[i].encrypts) continue;
    const std::size_t len = results[i].written;
    Buffer sealed(len, 0), text(len, paint);
    if (len != 0) std::memcpy(sealed.data(), messages[i].out, len);
    wc_message back = messages[i];
    back.direction = WC_DECRYPT;
    back.in = sealed.data();
    back.in_len = back.out_len = len;
    back.out = text.data();
    wc_result result = {};
    REQUIRE(wc_run("cpu", &result, &back, 1, nullptr) == WC_OK);
    REQUIRE(result.written == messages[i].in_len);
    if (!parts[i].in_place && result.written != 0) {
      REQUIRE(std::memcmp(text.data(), parts[i].in.data(), result.written) == 0);
    }
    if (back.tag_len == 0) continue;
    parts[i].tag.data()[input.below(back.tag_len)] ^= static_cast<std::uint8_t>(1u << input.below(8));
    REQUIRE(wc_run("cpu", &result, &back, 1, nullptr) == WC_INVALID_TAG);
    REQUIRE(all_are(text, 0));
  }
}

// A number that is right, a little wrong, or huge enough for a sum with it to wrap.
std::uint64_t any_number(Input& input, std::uint64_t usual) {
  if (!input.chance(60)) return usual;
  const std::uint64_t strange[] = {
      0, 1, usual + 1, usual - 1, UINT64_MAX, UINT64_MAX - usual, UINT64_MAX - 15, std::uint64_t{1} << 63, UINT32_MAX};
  return strange[input.below(std::size(strange))];
}

void fuzz_columns(Input& input) {
  const AnyKey key = any_key(input), other = any_key(input);
  std::vector<const wc_key*> key_pointers{key.handle.get()};
  if (input.chance(8)) key_pointers.push_back(other.handle.get());
  const std::size_t count = input.below(6);
  wc_columns columns = {};
  columns.direction = any_direction(input);
  columns.padding = any_padding(input, key.info);
  columns.tag_len = any_tag_len(input, key.info);
  columns.iv_len = any_iv_len(input, key.info);
  columns.count = count;

  // Exactly `count` entries each, so that reading one too many is seen.
  std::vector<std::uint32_t> key_index(count);
  std::vector<std::uint64_t> in_offsets(count), in_lengths(count), out_offsets(count), aad_offsets(count),
      aad_lengths(count);
  const Buffer aad = input.take(any_aad_len(input, key.info));
  std::uint64_t in_end = 0, out_end = 0;
  const bool gaps = input.chance(2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t len = any_text_len(input, key.info, columns.padding);
    key_index[i] = static_cast<std::uint32_t>(any_number(input, input.below(key_pointers.size())));
    in_lengths[i] = any_number(input, len);
    if (gaps) in_end += input.below(5), out_end += input.below(5);
    in_offsets[i] = any_number(input, in_end);
    out_offsets[i] = any_number(input, out_end);
    in_end += len;
    out_end += len + 32;
    aad_offsets[i] = any_number(input, input.below(aad.size() + 1));
    aad_lengths[i] = any_number(input, 0);
  }
  Buffer in = input.take(static_cast<std::size_t>(in_end) + input.below(3));
  Buffer out(input.chance(8) ? input.below(300) : static_cast<std::size_t>(out_end) + 16, paint);
  const Buffer ivs = input.take(count * columns.iv_len);
  const bool in_place = input.chance(8);
  columns.keys = key_pointers.data();
  columns.key_count = key_pointers.size();
  columns.key_index = input.chance(4) ? nullptr : key_index.data();
  columns.in = pointer(input, in);
  columns.in_len = in.size();
  columns.in_offsets = gaps || input.chance(2) ? in_offsets.data() : nullptr;
  columns.in_lengths = in_lengths.data();
  columns.out = in_place ? const_cast<void*>(columns.in) : pointer(input, out);
  columns.out_len = in_place ? in.size() : out.size();
  columns.out_offsets = input.chance(2) ? nullptr : out_offsets.data();
  columns.ivs = pointer(input, ivs);
  columns.aad = pointer(input, aad);
  columns.aad_len = aad.size();
  if (input.chance(2)) columns.aad_offsets = aad_offsets.data();
  if (columns.aad_offsets != nullptr && !input.chance(20)) columns.aad_lengths = aad_lengths.data();
  std::vector<wc_result> results(count, wc_result{WC_ENGINE_FAILURE, SIZE_MAX});
  const wc_status status = wc_run_columns(any_engine(input), results.data(), &columns, nullptr);
  if (status == WC_INVALID_ARGUMENT || status == WC_ENGINE_UNAVAILABLE) {
    REQUIRE(all_are(out, paint));
    for (const wc_result& result : results) REQUIRE(result.written == SIZE_MAX);
    return;
  }
  for (const wc_result& result : results) REQUIRE(result.written <= columns.out_len);
}

void fuzz_one_message(Input& input) {
  const AnyKey any = any_key(input);
  const KeyHandle& key = any.handle;
  const wc_padding padding = any_padding(input, any.info);
  const Buffer in = input.take(any_text_len(input, any.info, padding));
  const Buffer iv = input.take(any_iv_len(input, any.info));
  const Buffer aad = input.take(any_aad_len(input, any.info));
  Buffer out(input.chance(20) ? any_len(input) : in.size() + 16, paint);
  std::size_t written = 0;
  switch (input.below(4)) {
    case 0:
    case 1: {
      const auto call = input.chance(2) ? wc_encrypt : wc_decrypt;
      const wc_status status = call(key.get(), pointer(input, out), out.size(), input.chance(4) ? nullptr : &written,
                                    pointer(input, in), in.size(), pointer(input, iv), iv.size(), padding);
      if (status == WC_INVALID_ARGUMENT) REQUIRE(all_are(out, paint));
      REQUIRE(written <= out.size());
      break;
    }
    case 2: {
      const wc_status sealed = wc_seal(key.get(), pointer(input, out), out.size(), pointer(input, in), in.size(),
                                       pointer(input, iv), iv.size(), pointer(input, aad), aad.size());
      if (sealed != WC_OK) {
        REQUIRE(all_are(out, paint));
        break;
      }
      Buffer back(in.size(), paint);
      REQUIRE(wc_open(key.get(), back.data(), back.size(), out.data(), in.size() + 16, iv.data(), iv.size(), aad.data(),
                      aad.size()) == WC_OK);
      REQUIRE(std::equal(back.begin(), back.end(), in.begin()));
      break;
    }
    default: {
      const wc_status opened = wc_open(key.get(), pointer(input, out), out.size(), pointer(input, in), in.size(),
                                       pointer(input, iv), iv.size(), pointer(input, aad), aad.size());
      REQUIRE(opened != WC_OK);  // nobody guesses a 128-bit tag
      if (opened == WC_INVALID_ARGUMENT) REQUIRE(all_are(out, paint));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  switch (input.below(3)) {
    case 0:
      fuzz_run(input);
      break;
    case 1:
      fuzz_columns(input);
      break;
    default:
      fuzz_one_message(input);
  }
  return 0;
}
