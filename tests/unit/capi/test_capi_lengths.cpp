// SPDX-License-Identifier: Apache-2.0
// Lengths and counts that no memory has, as a subtraction that went below zero gives them: every function of the C ABI
// refuses them before it reads or writes a byte.
#include <gtest/gtest.h>
#include <warpcipher.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
using KeyPointer = std::unique_ptr<wc_key, decltype(&wc_key_free)>;

constexpr unsigned char paint = 0xa5;

// From 2^56 on: no buffer is longer.
std::vector<std::size_t> impossible_lengths() {
  std::vector<std::size_t> lengths{(std::size_t{1} << 56) + 1, std::size_t{1} << 62, (std::size_t{1} << 63) - 8,
                                   (std::size_t{1} << 63) - 1, std::size_t{1} << 63, (std::size_t{1} << 63) + 16};
  for (std::size_t i = 40; i > 0; --i) lengths.push_back(SIZE_MAX - i + 1);
  return lengths;
}

// Those, and lengths of real buffers that are longer than what is said to be there.
std::vector<std::size_t> large_lengths() {
  std::vector<std::size_t> lengths = impossible_lengths();
  lengths.insert(lengths.begin(), {std::size_t{1} << 31, std::size_t{1} << 32});
  return lengths;
}

struct AnyAlgorithm {
  wc_algorithm_info info;
  KeyPointer key;
};

std::vector<AnyAlgorithm> all_algorithms() {
  std::vector<AnyAlgorithm> all;
  for (std::size_t i = 0; i < wc_algorithm_count(); ++i) {
    wc_algorithm_info info{};
    EXPECT_EQ(wc_algorithm_at(&info, i), WC_OK);
    Bytes bytes(info.key_len);
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<unsigned char>(3 * k + 1);
    wc_key* key = nullptr;
    EXPECT_EQ(wc_key_new(&key, info.name, bytes.data(), bytes.size()), WC_OK);
    all.push_back({info, {key, wc_key_free}});
  }
  return all;
}

// Memory of 64 bytes for each buffer of a call, and a good message in it.
struct Memory {
  explicit Memory(const AnyAlgorithm& algorithm)
      : text(64, 1), out(80, paint), iv(64, 2), aad(64, 3), tag(16, paint), info(algorithm.info) {
    message = {};
    message.key = algorithm.key.get();
    message.in = text.data();
    message.in_len = 64;
    message.out = out.data();
    message.out_len = 64;
    message.iv = iv.data();
    message.iv_len = info.iv_len;
    message.aad = info.is_aead ? aad.data() : nullptr;
    message.aad_len = info.is_aead ? 64 : 0;
    message.tag = info.is_aead ? tag.data() : nullptr;
    message.tag_len = info.is_aead ? 16 : 0;
  }

  void expect_untouched() const {
    EXPECT_EQ(out, Bytes(80, paint));
    EXPECT_EQ(tag, Bytes(16, paint));
  }

  Bytes text, out, iv, aad, tag;
  wc_algorithm_info info;
  wc_message message;
};

void expect_refused(wc_status status, const char* what, std::size_t len) {
  EXPECT_EQ(status, WC_INVALID_ARGUMENT) << what << " " << len;
  EXPECT_NE(std::string(wc_last_error()), "");
}

TEST(CAbiLengths, OfMessagesAreBounded) {
  std::size_t wc_message::*const lengths[] = {&wc_message::in_len, &wc_message::out_len, &wc_message::iv_len,
                                              &wc_message::aad_len, &wc_message::tag_len};
  for (const AnyAlgorithm& algorithm : all_algorithms()) {
    for (const wc_direction direction : {WC_ENCRYPT, WC_DECRYPT}) {
      for (const wc_padding padding : {WC_PADDING_NONE, WC_PADDING_PKCS7}) {
        if (padding == WC_PADDING_PKCS7 && !algorithm.info.takes_padding) continue;
        for (const auto length : lengths) {
          for (const std::size_t len : impossible_lengths()) {
            Memory memory(algorithm);
            memory.message.direction = direction;
            memory.message.padding = padding;
            memory.message.*length = len;
            // A room that is as wrong as the text.
            if (length == &wc_message::in_len) memory.message.out_len = len;
            wc_result result{WC_ENGINE_FAILURE, 77};
            expect_refused(wc_run("cpu", &result, &memory.message, 1, nullptr), algorithm.info.name, len);
            EXPECT_EQ(result.written, 77u);
            memory.expect_untouched();
          }
        }
      }
    }
  }
}

TEST(CAbiLengths, OfTextsAreHeldAgainstTheRoom) {
  for (const AnyAlgorithm& algorithm : all_algorithms()) {
    for (const std::size_t len : large_lengths()) {
      Memory memory(algorithm);
      memory.message.in_len = len;
      wc_result result{};
      expect_refused(wc_run("auto", &result, &memory.message, 1, nullptr), algorithm.info.name, len);
      memory.expect_untouched();
    }
  }
}

TEST(CAbiLengths, OfOneMessageAreBounded) {
  for (const AnyAlgorithm& algorithm : all_algorithms()) {
    if (algorithm.info.is_aead) continue;
    for (const wc_padding padding : {WC_PADDING_NONE, WC_PADDING_PKCS7}) {
      for (const std::size_t len : impossible_lengths()) {
        for (const auto call : {&wc_encrypt, &wc_decrypt}) {
          Memory memory(algorithm);
          const wc_message& m = memory.message;
          const wc_key* const key = algorithm.key.get();
          std::size_t written = 77;
          expect_refused(call(key, m.out, len, &written, m.in, len, m.iv, m.iv_len, padding), "in_len", len);
          expect_refused(call(key, m.out, 80, &written, m.in, len, m.iv, m.iv_len, padding), "in_len", len);
          expect_refused(call(key, m.out, len, &written, m.in, 64, m.iv, m.iv_len, padding), "out_len", len);
          expect_refused(call(key, m.out, 80, &written, m.in, 64, m.iv, len, padding), "iv_len", len);
          EXPECT_EQ(written, 77u);
          memory.expect_untouched();
        }
      }
    }
  }
}

TEST(CAbiLengths, OfSealedTextsAreBounded) {
  for (const AnyAlgorithm& algorithm : all_algorithms()) {
    if (!algorithm.info.is_aead) continue;
    for (const std::size_t len : impossible_lengths()) {
      for (const auto call : {&wc_seal, &wc_open}) {
        Memory memory(algorithm);
        const wc_message& m = memory.message;
        const wc_key* const key = algorithm.key.get();
        expect_refused(call(key, m.out, len, m.in, len, m.iv, 12, m.aad, 64), "in_len", len);
        expect_refused(call(key, m.out, 80, m.in, len, m.iv, 12, m.aad, 64), "in_len", len);
        expect_refused(call(key, m.out, len, m.in, 64, m.iv, 12, m.aad, 64), "out_len", len);
        expect_refused(call(key, m.out, 80, m.in, 64, m.iv, len, m.aad, 64), "nonce_len", len);
        expect_refused(call(key, m.out, 80, m.in, 64, m.iv, 12, m.aad, len), "aad_len", len);
        memory.expect_untouched();
      }
    }
  }
}

TEST(CAbiLengths, OfKeysAreTheAlgorithms) {
  const Bytes bytes(64, 1);
  for (const AnyAlgorithm& algorithm : all_algorithms()) {
    for (const std::size_t len : large_lengths()) {
      wc_key* key = nullptr;
      expect_refused(wc_key_new(&key, algorithm.info.name, bytes.data(), len), "key_len", len);
      EXPECT_EQ(key, nullptr);
    }
  }
}

TEST(CAbiLengths, CountsAreBounded) {
  wc_message message = {};
  wc_result result{};
  for (const std::size_t count : impossible_lengths()) {
    expect_refused(wc_run("cpu", &result, &message, count, nullptr), "count", count);
  }
  expect_refused(wc_run("cpu", &result, &message, std::size_t{1} << 32, nullptr), "count", std::size_t{1} << 32);
}

// A good columnar batch of two messages.
struct Columns {
  explicit Columns(const AnyAlgorithm& algorithm) : keys{algorithm.key.get()} {
    ivs[31] = ivs[23] = 5;  // the second differs from the first
    const wc_algorithm_info& info = algorithm.info;
    c.keys = keys;
    c.key_count = 1;
    c.key_index = key_index;
    c.count = 2;
    c.in = text.data();
    c.in_len = text.size();
    c.in_offsets = in_offsets;
    c.in_lengths = in_lengths;
    c.out = out.data();
    c.out_len = out.size();
    c.out_offsets = out_offsets;
    c.iv_len = info.iv_len;
    c.ivs = c.iv_len != 0 ? ivs.data() : nullptr;
    if (!info.is_aead) return;
    c.aad = aad.data();
    c.aad_len = aad.size();
    c.aad_offsets = aad_offsets;
    c.aad_lengths = aad_lengths;
    c.tag_len = 16;
  }

  void expect_refusal(const char* what, std::size_t len) {
    expect_refused(wc_run_columns("cpu", results, &c, nullptr), what, len);
    EXPECT_EQ(out, Bytes(96, paint)) << what << " " << len;
    EXPECT_EQ(results[0].written, 77u);
  }

  const wc_key* const keys[1];
  std::uint32_t key_index[2] = {0, 0};
  std::uint64_t in_offsets[2] = {0, 32}, in_lengths[2] = {32, 32}, out_offsets[2] = {0, 48}, aad_offsets[2] = {0, 8},
                aad_lengths[2] = {8, 8};
  const Bytes text = Bytes(64, 1), aad = Bytes(16, 3), key_bytes = Bytes(32, 4);
  Bytes ivs = Bytes(48, 2), out = Bytes(96, paint);
  wc_result results[2] = {{WC_ENGINE_FAILURE, 77}, {WC_ENGINE_FAILURE, 77}};
  wc_columns c = {};
};

TEST(CAbiLengths, OfColumnsAreBounded) {
  for (const AnyAlgorithm& algorithm : all_algorithms()) {
    const char* const name = algorithm.info.name;
    Columns good(algorithm);
    ASSERT_EQ(wc_run_columns("cpu", good.results, &good.c, nullptr), WC_OK) << name << ": " << wc_last_error();
    for (const auto field : {&wc_columns::in_len, &wc_columns::out_len, &wc_columns::iv_len, &wc_columns::aad_len,
                             &wc_columns::tag_len, &wc_columns::count}) {
      for (const std::size_t len : impossible_lengths()) {
        Columns columns(algorithm);
        columns.c.*field = len;
        columns.c.aad = columns.aad.data();
        columns.c.ivs = columns.ivs.data();
        columns.expect_refusal(name, len);
      }
    }
    for (const auto numbers : {&Columns::in_offsets, &Columns::in_lengths, &Columns::out_offsets, &Columns::aad_offsets,
                               &Columns::aad_lengths}) {
      if (!algorithm.info.is_aead && (numbers == &Columns::aad_offsets || numbers == &Columns::aad_lengths)) continue;
      for (const std::size_t number : large_lengths()) {
        Columns columns(algorithm);
        (columns.*numbers)[1] = number;
        columns.expect_refusal(name, number);
      }
    }
    for (const std::size_t len : impossible_lengths()) {
      Columns columns(algorithm);
      columns.c.key_count = len;
      columns.expect_refusal(name, len);
      columns.c.keys = nullptr;
      columns.c.key_count = 0;
      columns.c.algorithm = name;
      columns.c.key_bytes = columns.key_bytes.data();
      columns.c.key_bytes_len = len;
      columns.expect_refusal(name, len);
    }
  }
}

TEST(CAbiLengths, OfABatchAreLookedAtWhenItRuns) {
  for (const AnyAlgorithm& algorithm : all_algorithms()) {
    for (const std::size_t len : {std::size_t{1} << 63, SIZE_MAX - 16, SIZE_MAX - 3, SIZE_MAX}) {
      Memory memory(algorithm);
      memory.message.in_len = memory.message.out_len = len;
      memory.message.padding = algorithm.info.takes_padding ? WC_PADDING_PKCS7 : WC_PADDING_NONE;
      wc_batch* batch = nullptr;
      ASSERT_EQ(wc_batch_new(&batch, "cpu"), WC_OK);
      EXPECT_EQ(wc_batch_add(batch, nullptr, &memory.message), WC_OK);
      EXPECT_EQ(wc_batch_start(batch, nullptr), WC_OK);
      expect_refused(wc_batch_wait(batch), algorithm.info.name, len);
      wc_result result{};
      expect_refused(wc_batch_result(&result, batch, len), "index", len);
      wc_batch_free(batch);
      memory.expect_untouched();
    }
  }
}

}  // namespace
