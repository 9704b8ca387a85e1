// SPDX-License-Identifier: Apache-2.0
// The boundary between C and the library, shared by every function of the C ABI: handles, C values as the library's
// own, and exceptions as a status and a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "message/key.hpp"
#include "message/message.hpp"
#include "warpcipher.h"

struct wc_key {
  warpcipher::Key key;
};

namespace warpcipher::capi {

// Keeps the text for wc_last_error() of this thread. Returns the status as the C ABI has it.
wc_status fail(Status status, const char* text) noexcept;
wc_status fail(wc_status status, const char* text) noexcept;  // for one that the library itself lacks

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

// Throws Error{invalid_argument} with `text` unless `condition` holds.
void require(bool condition, const char* text);

inline const std::uint8_t* bytes(const void* p) { return static_cast<const std::uint8_t*>(p); }
inline std::uint8_t* bytes(void* p) { return static_cast<std::uint8_t*>(p); }

// An array of a property of each of `count` messages or chunks; a null pointer is not an array.
template <class T>
std::span<T> column(T* entries, std::size_t count) {
  return entries != nullptr ? std::span<T>(entries, count) : std::span<T>();
}

// These throw Error{invalid_argument} for a value that the enumeration lacks.
Direction to_direction(wc_direction direction);
Padding to_padding(wc_padding padding);
Memory to_memory(wc_memory memory);
Message to_message(const wc_message& m);

wc_result to_result(const Result& result);

// WC_OK, or the status of fail() for a tag or padding that does not match.
wc_status report(Status status);

// A null pointer stands for "auto".
inline std::string_view engine_name(const char* engine) { return engine != nullptr ? engine : "auto"; }

}  // namespace warpcipher::capi
