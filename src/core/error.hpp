// SPDX-License-Identifier: Apache-2.0
// Failures, as the status codes of the C ABI, and the exception that carries one inside the library.
#pragma once

#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace warpcipher {

// The values equal wc_status in warpcipher.h (checked there).
enum class Status : int {
  ok = 0,
  invalid_argument = 1,    // the input cannot be right, whatever the engine: a length, a name, a pointer
  invalid_tag = 2,         // an authentication tag did not match; the output is wiped
  invalid_padding = 3,     // PKCS#7 padding did not match; the output is wiped
  engine_unavailable = 4,  // the engine asked for is unknown, cannot run here, or failed its self-test
  engine_failure = 5,      // the engine failed while running: CUDA or libcrypto said so
  out_of_memory = 6,
  read_failed = 7,  // a file could not be read, or ends too early
};

// Words and numbers as one text.
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string text;
  const auto add = [&text](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(parts), ...);
  return text;
}

class Error : public std::runtime_error {
 public:
  // The text is all parts, words and numbers.
  template <class... Parts>
  explicit Error(Status status, const Parts&... parts) : std::runtime_error(joined(parts...)), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

// The caller's input cannot be right.
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Error(Status::invalid_argument, parts...);
}

// The number of a name in a list. Throws Error{invalid_argument} that says which there are; what: the argument's name.
template <class Names>
std::size_t find_name(const Names& names, std::string_view name, const char* what) {
  std::string known;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (names[i] == name) return i;
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  refuse(what, " is '", name.substr(0, 64), "': expected one of ", known);
}

}  // namespace warpcipher
