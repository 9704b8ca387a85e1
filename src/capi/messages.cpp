// SPDX-License-Identifier: Apache-2.0
// The C ABI: keys, and messages that run while the caller waits, a single one or an array of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary.hpp"
#include "dispatch/batch.hpp"
#include "dispatch/run.hpp"
#include "message/message.hpp"
#include "mode/algorithm.hpp"
#include "warpcipher.h"

using warpcipher::capi::bytes;
using warpcipher::capi::column;
using warpcipher::capi::engine_name;
using warpcipher::capi::guarded;
using warpcipher::capi::report;
using warpcipher::capi::require;
using warpcipher::capi::to_direction;
using warpcipher::capi::to_memory;
using warpcipher::capi::to_message;
using warpcipher::capi::to_padding;
using warpcipher::capi::to_result;

namespace {

wc_status run_one(const warpcipher::Message& message, std::size_t* written) {
  warpcipher::Result result;
  warpcipher::run("auto", {&message, 1}, {&result, 1});
  if (written != nullptr) *written = result.written;
  return report(result.status);
}

wc_status run_text(warpcipher::Direction direction, const wc_key* key, void* out, std::size_t out_len,
                   std::size_t* written, const void* in, std::size_t in_len, const void* iv, std::size_t iv_len,
                   wc_padding padding) {
  return guarded([&] {
    require(key == nullptr || !key->key.algorithm().is_aead(),
            "wc_encrypt and wc_decrypt have no place for a tag: an AEAD key is for wc_seal and wc_open");
    warpcipher::Message message;
    message.key = key != nullptr ? &key->key : nullptr;
    message.direction = direction;
    message.padding = to_padding(padding);
    message.in = bytes(in);
    message.in_len = in_len;
    message.out = bytes(out);
    message.out_len = out_len;
    message.iv = bytes(iv);
    message.iv_len = iv_len;
    return run_one(message, written);
  });
}

wc_status run_aead(warpcipher::Direction direction, const wc_key* key, void* out, std::size_t out_len, const void* in,
                   std::size_t in_len, const void* nonce, std::size_t nonce_len, const void* aad, std::size_t aad_len) {
  return guarded([&] {
    require(key != nullptr, "the key is missing (null pointer)");
    require(key->key.algorithm().is_aead(), "wc_seal and wc_open take an AEAD key such as aes-256-gcm");
    const bool sealing = direction == warpcipher::Direction::encrypt;
    warpcipher::check_buffer_len("in", in_len);
    warpcipher::check_buffer_len("out", out_len);
    require(sealing || in_len >= warpcipher::full_tag_len, "in is shorter than the 16-byte tag");
    const std::size_t text_len = sealing ? in_len : in_len - warpcipher::full_tag_len;
    require(
        out_len >= text_len + (sealing ? warpcipher::full_tag_len : 0),
        sealing ? "out has room for fewer than in_len + 16 bytes" : "out has room for fewer than in_len - 16 bytes");
    require(out != nullptr || text_len + (sealing ? warpcipher::full_tag_len : 0) == 0, "out is a null pointer");
    require(in != nullptr || in_len == 0, "in is a null pointer");
    warpcipher::Message message;
    message.key = &key->key;
    message.direction = direction;
    message.in = bytes(in);
    message.in_len = text_len;
    message.out = bytes(out);
    message.out_len = text_len;
    message.iv = bytes(nonce);
    message.iv_len = nonce_len;
    message.aad = bytes(aad);
    message.aad_len = aad_len;
    // Decryption only reads the tag.
    message.tag = sealing ? bytes(out) + text_len : const_cast<std::uint8_t*>(bytes(in)) + text_len;
    message.tag_len = warpcipher::full_tag_len;
    return run_one(message, nullptr);
  });
}

}  // namespace

wc_status wc_key_new(wc_key** out, const char* algorithm, const void* key, size_t key_len) {
  return guarded([&] {
    require(out != nullptr, "out is a null pointer");
    *out = nullptr;
    require(algorithm != nullptr, "algorithm is a null pointer");
    require(key != nullptr || key_len == 0, "key is a null pointer");
    *out = new wc_key{{warpcipher::find_algorithm(algorithm), {bytes(key), key_len}}};
    return WC_OK;
  });
}

void wc_key_free(wc_key* key) { delete key; }

wc_status wc_run(const char* engine, wc_result* results, const wc_message* messages, size_t count, void* stream) {
  return guarded([&] {
    require(count == 0 || (results != nullptr && messages != nullptr), "results or messages is a null pointer");
    warpcipher::check_message_count(count);
    std::vector<warpcipher::Message> converted;
    converted.reserve(count);
    for (std::size_t i = 0; i < count; ++i) converted.push_back(to_message(messages[i]));
    std::vector<warpcipher::Result> outcome(count);
    warpcipher::run(engine_name(engine), converted, outcome, stream);
    std::transform(outcome.begin(), outcome.end(), results, to_result);
    return report(warpcipher::first_failure(outcome));
  });
}

wc_status wc_encrypt(const wc_key* key, void* out, size_t out_len, size_t* written, const void* in, size_t in_len,
                     const void* iv, size_t iv_len, wc_padding padding) {
  return run_text(warpcipher::Direction::encrypt, key, out, out_len, written, in, in_len, iv, iv_len, padding);
}

wc_status wc_decrypt(const wc_key* key, void* out, size_t out_len, size_t* written, const void* in, size_t in_len,
                     const void* iv, size_t iv_len, wc_padding padding) {
  return run_text(warpcipher::Direction::decrypt, key, out, out_len, written, in, in_len, iv, iv_len, padding);
}

wc_status wc_seal(const wc_key* key, void* out, size_t out_len, const void* in, size_t in_len, const void* nonce,
                  size_t nonce_len, const void* aad, size_t aad_len) {
  return run_aead(warpcipher::Direction::encrypt, key, out, out_len, in, in_len, nonce, nonce_len, aad, aad_len);
}

wc_status wc_open(const wc_key* key, void* out, size_t out_len, const void* in, size_t in_len, const void* nonce,
                  size_t nonce_len, const void* aad, size_t aad_len) {
  return run_aead(warpcipher::Direction::decrypt, key, out, out_len, in, in_len, nonce, nonce_len, aad, aad_len);
}

// The C ABI: messages as columns, an array of each of their properties.

wc_status wc_run_columns(const char* engine, wc_result* results, const wc_columns* columns, void* stream) {
  return guarded([&] {
    require(columns != nullptr, "columns is a null pointer");
    const wc_columns& c = *columns;
    require(c.count == 0 || results != nullptr, "results is a null pointer");
    require(c.algorithm != nullptr || (c.keys != nullptr && c.key_count != 0),
            "keys is a null pointer or key_count is 0");
    require(c.algorithm == nullptr || c.keys == nullptr, "keys are given twice: as handles and as bytes");
    require(c.algorithm == nullptr || c.key_bytes != nullptr, "key_bytes is a null pointer");
    require(c.count == 0 || c.in_lengths != nullptr, "in_lengths is a null pointer");
    require(c.in != nullptr || c.in_len == 0, "in is a null pointer");
    require(c.out != nullptr || c.out_len == 0, "out is a null pointer");
    require(c.aad != nullptr || c.aad_len == 0, "aad is a null pointer");
    require(c.iv_len == 0 || c.ivs != nullptr || c.count == 0, "ivs is a null pointer");
    warpcipher::check_message_count(c.count);
    warpcipher::check_buffer_len("an IV", c.iv_len);
    require(c.iv_len == 0 || c.count <= SIZE_MAX / c.iv_len, "count times iv_len is too large");
    require(c.key_count <= UINT32_MAX, "key_count is above 2^32 - 1");
    std::vector<const warpcipher::Key*> keys;
    if (c.algorithm == nullptr) keys.reserve(c.key_count);
    for (std::size_t i = 0; c.algorithm == nullptr && i < c.key_count; ++i) {
      require(c.keys[i] != nullptr, "one of keys is a null pointer");
      keys.push_back(&c.keys[i]->key);
    }
    warpcipher::Columns converted;
    converted.direction = to_direction(c.direction);
    converted.padding = to_padding(c.padding);
    converted.memory = to_memory(c.memory);
    converted.columns_memory = to_memory(c.columns_memory);
    converted.keys = keys;
    if (c.algorithm != nullptr) {
      converted.algorithm = &warpcipher::find_algorithm(c.algorithm);
      converted.key_bytes = {bytes(c.key_bytes), c.key_bytes_len};
    }
    converted.key_index = column(c.key_index, c.count);
    converted.count = c.count;
    converted.in = {bytes(c.in), c.in_len};
    converted.in_offsets = column(c.in_offsets, c.count);
    converted.in_lengths = column(c.in_lengths, c.count);
    converted.out = {bytes(c.out), c.out_len};
    converted.out_offsets = column(c.out_offsets, c.count);
    converted.ivs = {bytes(c.ivs), c.count * c.iv_len};
    converted.iv_len = c.iv_len;
    converted.aad = {bytes(c.aad), c.aad_len};
    converted.aad_offsets = column(c.aad_offsets, c.count);
    converted.aad_lengths = column(c.aad_lengths, c.count);
    converted.tag_len = c.tag_len;
    // Results are written in place, by the device where they lie there.
    static_assert(sizeof(wc_result) == sizeof(warpcipher::Result) &&
                  offsetof(wc_result, status) == offsetof(warpcipher::Result, status) &&
                  offsetof(wc_result, written) == offsetof(warpcipher::Result, written));
    const std::span outcome(reinterpret_cast<warpcipher::Result*>(results), c.count);
    return report(warpcipher::run_columns(engine_name(engine), converted, outcome, stream));
  });
}

// The C ABI: a batch that runs in the background.

struct wc_batch {
  explicit wc_batch(std::string engine) : batch(std::move(engine)) {}
  warpcipher::Batch batch;
};

wc_status wc_batch_new(wc_batch** out, const char* engine) {
  return guarded([&] {
    require(out != nullptr, "out is a null pointer");
    *out = nullptr;
    *out = new wc_batch{std::string(engine_name(engine))};
    return WC_OK;
  });
}

wc_status wc_batch_add(wc_batch* batch, size_t* index, const wc_message* message) {
  return guarded([&] {
    require(batch != nullptr && message != nullptr, "batch or message is a null pointer");
    const std::size_t number = batch->batch.add(to_message(*message));
    if (index != nullptr) *index = number;
    return WC_OK;
  });
}

wc_status wc_batch_start(wc_batch* batch, void* stream) {
  return guarded([&] {
    require(batch != nullptr, "batch is a null pointer");
    batch->batch.start(stream);
    return WC_OK;
  });
}

wc_status wc_batch_query(int* done, const wc_batch* batch) {
  return guarded([&] {
    require(done != nullptr && batch != nullptr, "done or batch is a null pointer");
    *done = batch->batch.is_done();
    return WC_OK;
  });
}

wc_status wc_batch_wait(wc_batch* batch) {
  return guarded([&] {
    require(batch != nullptr, "batch is a null pointer");
    return report(batch->batch.wait());
  });
}

wc_status wc_batch_result(wc_result* result, const wc_batch* batch, size_t index) {
  return guarded([&] {
    require(result != nullptr && batch != nullptr, "result or batch is a null pointer");
    *result = to_result(batch->batch.result(index));
    return WC_OK;
  });
}

void wc_batch_free(wc_batch* batch) { delete batch; }
