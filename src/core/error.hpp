// SPDX-License-Identifier: Apache-2.0
// The exception that carries a status inside the library.
#pragma once

#include <stdexcept>
#include <string>

#include "core/status.hpp"

namespace warpcipher {

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& what) : std::runtime_error(what), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

// The caller's input cannot be right.
[[noreturn]] inline void refuse(const std::string& text) { throw Error(Status::invalid_argument, text); }

}  // namespace warpcipher
