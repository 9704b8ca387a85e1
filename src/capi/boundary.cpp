// SPDX-License-Identifier: Apache-2.0
// Converts C values to the library's, and keeps the text of the last error for each thread.
#include "capi/boundary.hpp"

#include <cstddef>
#include <string>

#include "engine/engine.hpp"
#include "mode/algorithm.hpp"
#include "warpcipher.h"

namespace warpcipher::capi {
namespace {

static_assert(int{WC_OK} == static_cast<int>(Status::ok));
static_assert(int{WC_INVALID_ARGUMENT} == static_cast<int>(Status::invalid_argument));
static_assert(int{WC_INVALID_TAG} == static_cast<int>(Status::invalid_tag));
static_assert(int{WC_INVALID_PADDING} == static_cast<int>(Status::invalid_padding));
static_assert(int{WC_ENGINE_UNAVAILABLE} == static_cast<int>(Status::engine_unavailable));
static_assert(int{WC_ENGINE_FAILURE} == static_cast<int>(Status::engine_failure));
static_assert(int{WC_OUT_OF_MEMORY} == static_cast<int>(Status::out_of_memory));
static_assert(int{WC_READ_FAILED} == static_cast<int>(Status::read_failed));

thread_local std::string last_error;

const char* failure_text(Status status) {
  return status == Status::invalid_tag ? "the tag does not match: wrong key, nonce or AAD, or damaged data"
                                       : "the padding is not PKCS#7: wrong key or IV, or damaged data";
}

}  // namespace

wc_status fail(Status status, const char* text) noexcept { return fail(static_cast<wc_status>(status), text); }

wc_status fail(wc_status status, const char* text) noexcept {
  try {
    last_error = text;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return status;
}

void require(bool condition, const char* text) {
  if (!condition) refuse(text);
}

Direction to_direction(wc_direction direction) {
  require(direction == WC_ENCRYPT || direction == WC_DECRYPT, "direction is neither WC_ENCRYPT nor WC_DECRYPT");
  return static_cast<Direction>(direction);
}

Padding to_padding(wc_padding padding) {
  require(padding == WC_PADDING_NONE || padding == WC_PADDING_PKCS7,
          "padding is neither WC_PADDING_NONE nor WC_PADDING_PKCS7");
  return static_cast<Padding>(padding);
}

Memory to_memory(wc_memory memory) {
  require(memory == WC_MEMORY_HOST || memory == WC_MEMORY_DEVICE,
          "memory is neither WC_MEMORY_HOST nor WC_MEMORY_DEVICE");
  return static_cast<Memory>(memory);
}

Message to_message(const wc_message& m) {
  Message message;
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

wc_result to_result(const Result& result) { return {static_cast<wc_status>(result.status), result.written}; }

wc_status report(Status status) { return status == Status::ok ? WC_OK : fail(status, failure_text(status)); }

}  // namespace warpcipher::capi

const char* wc_status_text(wc_status status) {
  switch (status) {
    case WC_OK: return "ok";
    case WC_INVALID_ARGUMENT: return "invalid argument";
    case WC_INVALID_TAG: return "invalid tag";
    case WC_INVALID_PADDING: return "invalid padding";
    case WC_ENGINE_UNAVAILABLE: return "engine unavailable";
    case WC_ENGINE_FAILURE: return "engine failure";
    case WC_OUT_OF_MEMORY: return "out of memory";
    case WC_READ_FAILED: return "read failed";
    case WC_QUEUE_FULL: return "queue full";
    case WC_QUEUE_CLOSED: return "queue closed";
    case WC_CANCELLED: return "cancelled";
    case WC_WRITE_FAILED: return "write failed";
  }
  return "unknown status";
}

const char* wc_last_error(void) { return warpcipher::capi::last_error.c_str(); }

// The C ABI: version, algorithms and engines of this build.

#ifndef WARPCIPHER_VERSION
#error "the build defines WARPCIPHER_VERSION"
#endif

using warpcipher::capi::guarded;
using warpcipher::capi::require;

const char* wc_version(void) { return WARPCIPHER_VERSION; }

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
             .parallel_decrypt = a.mode.parallel_decrypt,
             .iv_len = a.iv_len};
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
    throw warpcipher::Error(warpcipher::Status::invalid_argument, "unknown engine: wc_engine_at() lists them");
  });
}
