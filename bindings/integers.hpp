// SPDX-License-Identifier: Apache-2.0
// Arguments that are integers, and columns of them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <vector>

namespace warpcipher::python {

// An int from 0 to `most`. Throws TypeError or ValueError that names the argument.
std::uint64_t number_of(nanobind::handle object, const char* name, std::uint64_t most = UINT64_MAX);

// Borrowed where they lie as 64-bit integers in memory (array('Q'), NumPy), copied from any sequence of ints otherwise.
class Integers {
 public:
  // None gives an empty column. Throws TypeError or ValueError that names the column.
  Integers(nanobind::handle object, const char* name);
  Integers(const Integers&) = delete;
  Integers& operator=(const Integers&) = delete;
  ~Integers();

  std::span<const std::uint64_t> values() const { return values_; }

  // Copies borrowed integers: for calls that read a column again after they checked it, while others may write to it.
  void own();

 private:
  bool borrow_buffer(const char* name);

  Py_buffer buffer_{};
  bool exported_ = false;
  std::vector<std::uint64_t> copied_;
  std::span<const std::uint64_t> values_;
};

}  // namespace warpcipher::python
