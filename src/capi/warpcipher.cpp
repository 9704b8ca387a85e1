// SPDX-License-Identifier: Apache-2.0
// The C ABI: turns C structs into the library's own and exceptions into a status and a text. Nothing is decided here.
#include "warpcipher.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "dispatch/batch.hpp"
#include "dispatch/columns.hpp"
#include "dispatch/run.hpp"

#ifndef WARPCIPHER_VERSION
#error "the build defines WARPCIPHER_VERSION"
#endif

using warpcipher::Error;
using warpcipher::Status;

struct wc_key {
  warpcipher::Key key;
};

struct wc_batch {
  explicit wc_batch(std::string engine) : batch(std::move(engine)) {}
  warpcipher::Batch batch;
};

namespace {

static_assert(int{WC_OK} == static_cast<int>(Status::ok));
static_assert(int{WC_INVALID_ARGUMENT} == static_cast<int>(Status::invalid_argument));
static_assert(int{WC_INVALID_TAG} == static_cast<int>(Status::invalid_tag));
static_assert(int{WC_INVALID_PADDING} == static_cast<int>(Status::invalid_padding));
static_assert(int{WC_ENGINE_UNAVAILABLE} == static_cast<int>(Status::engine_unavailable));
static_assert(int{WC_ENGINE_FAILURE} == static_cast<int>(Status::engine_failure));
static_assert(int{WC_OUT_OF_MEMORY} == static_cast<int>(Status::out_of_memory));

thread_local std::string last_error;

wc_status fail(Status status, const char* text) noexcept {
  try {
    last_error = text;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return static_cast<wc_status>(status);
}

// Runs `body`, which returns a wc_status, and keeps exceptions from crossing into C.
template <class Body>
wc_status guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(Status::out_of_memory, "out of host memory");
  } catch (const std::exception& error) {
    return fail(Status::engine_failure, error.what());
  }
}

void require(bool condition, const char* text) {
  if (!condition) throw Error(Status::invalid_argument, text);
}

const std::uint8_t* bytes(const void* p) { return static_cast<const std::uint8_t*>(p); }
std::uint8_t* bytes(void* p) { return static_cast<std::uint8_t*>(p); }

warpcipher::Direction to_direction(wc_direction direction) {
  require(direction == WC_ENCRYPT || direction == WC_DECRYPT, "direction is neither WC_ENCRYPT nor WC_DECRYPT");
  return static_cast<warpcipher::Direction>(direction);
}

warpcipher::Padding to_padding(wc_padding padding) {
  require(padding == WC_PADDING_NONE || padding == WC_PADDING_PKCS7,
          "padding is neither WC_PADDING_NONE nor WC_PADDING_PKCS7");
  return static_cast<warpcipher::Padding>(padding);
}

warpcipher::Memory to_memory(wc_memory memory) {
  require(memory == WC_MEMORY_HOST || memory == WC_MEMORY_DEVICE,
          "memory is neither WC_MEMORY_HOST nor WC_MEMORY_DEVICE");
  return static_cast<warpcipher::Memory>(memory);
}

warpcipher::Message to_message(const wc_message& m) {
  warpcipher::Message message;
  message.key = m.key != nullptr ? &m.key->key : nullptr;
  message.direction = to_direction(m.direction);
  message.padding = to_padding(m.padding);
  message.memory = to_memory(m.memory);
  message.in = bytes(m.in);
  message.in_len = m.in_len;
  message.out = bytes(m.out);
  message.out_len = m.out_len;
  message.iv = bytes(m.iv);
  message.iv_len = m.iv_len;
  message.aad = bytes(m.aad);
  message.aad_len = m.aad_len;
  message.tag = bytes(m.tag);
  message.tag_len = m.tag_len;
  return message;
}

template <class T>
std::span<T> column(T* entries, std::size_t count) {
  return entries != nullptr ? std::span<T>(entries, count) : std::span<T>();
}

const char* failure_text(Status status) {
  return status == Status::invalid_tag ? "the tag does not match: wrong key, nonce or AAD, or damaged data"
                                       : "the padding is not PKCS#7: wrong key or IV, or damaged data";
}

wc_status report(Status status) { return status == Status::ok ? WC_OK : fail(status, failure_text(status)); }

wc_result to_result(const warpcipher::Result& result) {
  return {static_cast<wc_status>(result.status), result.written};
}

std::string_view engine_name(const char* engine) { return engine != nullptr ? engine : "auto"; }

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

constexpr std::size_t full_tag_len = 16;

wc_status run_aead(warpcipher::Direction direction, const wc_key* key, void* out, std::size_t out_len, const void* in,
                   std::size_t in_len, const void* nonce, std::size_t nonce_len, const void* aad, std::size_t aad_len) {
  return guarded([&] {
    require(key != nullptr, "the key is missing (null pointer)");
    require(key->key.algorithm().is_aead(), "wc_seal and wc_open take an AEAD key such as aes-256-gcm");
    const bool sealing = direction == warpcipher::Direction::encrypt;
    warpcipher::check_buffer_len("in", in_len);
    warpcipher::check_buffer_len("out", out_len);
    require(sealing || in_len >= full_tag_len, "in is shorter than the 16-byte tag");
    const std::size_t text_len = sealing ? in_len : in_len - full_tag_len;
    require(out_len >= text_len + (sealing ? full_tag_len : 0), sealing
                                                                    ? "out has room for fewer than in_len + 16 bytes"
                                                                    : "out has room for fewer than in_len - 16 bytes");
    require(out != nullptr || text_len + (sealing ? full_tag_len : 0) == 0, "out is a null pointer");
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
    message.tag_len = full_tag_len;
    return run_one(message, nullptr);
  });
}

}  // namespace

const char* wc_version(void) { return WARPCIPHER_VERSION; }

const char* wc_status_text(wc_status status) {
  switch (status) {
    case WC_OK:
      return "ok";
    case WC_INVALID_ARGUMENT:
      return "invalid argument";
    case WC_INVALID_TAG:
      return "invalid tag";
    case WC_INVALID_PADDING:
      return "invalid padding";
    case WC_ENGINE_UNAVAILABLE:
      return "engine unavailable";
    case WC_ENGINE_FAILURE:
      return "engine failure";
    case WC_OUT_OF_MEMORY:
      return "out of memory";
  }
  return "unknown status";
}

const char* wc_last_error(void) { return last_error.c_str(); }

size_t wc_algorithm_count(void) { return warpcipher::algorithms().size(); }

wc_status wc_algorithm_at(wc_algorithm_info* info, size_t index) {
  return guarded([&] {
    require(info != nullptr, "info is a null pointer");
    require(index < warpcipher::algorithms().size(), "index is not below wc_algorithm_count()");
    const warpcipher::Algorithm& a = warpcipher::algorithms()[index];
    *info = {.name = a.name.data(),
             .key_len = a.key_len(),
             .block_len = a.block_len(),
             .iv_rule = static_cast<wc_iv_rule>(a.mode.iv),
             .is_aead = a.is_aead(),
             .whole_blocks = a.mode.whole_blocks,
             .takes_padding = a.takes_padding(),
             .parallel_encrypt = a.mode.parallel_encrypt,
             .parallel_decrypt = a.mode.parallel_decrypt};
    return WC_OK;
  });
}

size_t wc_engine_count(void) { return warpcipher::engines().size(); }

wc_status wc_engine_at(wc_engine_info* info, size_t index) {
  return guarded([&] {
    require(info != nullptr, "info is a null pointer");
    require(index < warpcipher::engines().size(), "index is not below wc_engine_count()");
    const warpcipher::Engine& engine = *warpcipher::engines()[index];
    const std::string& reason = engine.unavailable_reason();
    *info = {.name = engine.name().data(),
             .description = engine.description().data(),
             .usable = reason.empty(),
             .reason = reason.c_str(),
             .memory = static_cast<wc_memory>(engine.memory())};
    return WC_OK;
  });
}

wc_status wc_engine_constant_time(int* constant_time, const char* engine, const char* algorithm) {
  return guarded([&] {
    require(constant_time != nullptr, "constant_time is a null pointer");
    require(engine != nullptr && algorithm != nullptr, "engine or algorithm is a null pointer");
    const warpcipher::Algorithm& found = warpcipher::find_algorithm(algorithm);
    for (const warpcipher::Engine* candidate : warpcipher::engines()) {
      if (candidate->name() != engine) continue;
      *constant_time = candidate->constant_time(found);
      return WC_OK;
    }
    throw Error(Status::invalid_argument, "unknown engine: wc_engine_at() lists them");
  });
}

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
