// SPDX-License-Identifier: Apache-2.0
// Arguments that calls with columns share: keys, and columns that may be left out.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "integers.hpp"
#include "message/key.hpp"

namespace warpcipher::python {

// The keys of a batch as Python gives them: a Key, the bytes of one, or a sequence of either.
class Keys {
 public:
  Keys(const Algorithm& algorithm, nanobind::handle object);

  std::span<const Key* const> pointers() const { return pointers_; }
  const std::vector<nanobind::object>& objects() const { return objects_; }

 private:
  void add(const Algorithm& algorithm, nanobind::handle item);

  std::vector<nanobind::object> objects_;
  std::vector<const Key*> pointers_;
};

// Numbers of keys. Throws Error{invalid_argument} for one that no key has.
std::vector<std::uint32_t> narrow(std::span<const std::uint64_t> values);

// An empty column stands for an absent one further down, so one that was given is checked here. `of` is what the column
// describes, such as "messages".
void check_given(nanobind::handle object, const Integers& column, const char* name, std::size_t count, const char* of);

// The text of a str. Throws TypeError that names the argument.
std::string text_of(nanobind::handle object, const char* name);

}  // namespace warpcipher::python
