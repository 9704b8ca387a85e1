// SPDX-License-Identifier: Apache-2.0
// The exception that carries a status inside the library.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/status.hpp"

namespace warpcipher {

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

}  // namespace warpcipher
