// SPDX-License-Identifier: Apache-2.0
// Columns of integers: borrowed where they lie as 64-bit integers in memory (array('Q'), NumPy), copied from any
// sequence of ints otherwise.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

namespace warpcipher::python {

class Integers {
 public:
  // None gives an empty column. Throws TypeError or ValueError that names the column.
  Integers(nanobind::handle object, const char* name);
  Integers(const Integers&) = delete;
  Integers& operator=(const Integers&) = delete;
  ~Integers();

  std::span<const std::uint64_t> values() const { return values_; }

 private:
  bool borrow_buffer(const char* name);

  Py_buffer buffer_{};
  bool exported_ = false;
  std::vector<std::uint64_t> copied_;
  std::span<const std::uint64_t> values_;
};

}  // namespace warpcipher::python
