// SPDX-License-Identifier: Apache-2.0
// The instruction sets that vector code is compiled for, a file of src/instruction_sets/ each. This processor may lack
// some of them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/fork.hpp"

namespace warpcipher {

// Whether this processor has the set of that name. cmake/CompileOptions.cmake compiles a file for each set:
//
//   baseline   every x86-64 or ARMv8 processor has it
//   avx2       AVX2, FMA and BMI2
//   avx512     AVX-512 and BMI2
//   aesni      AES instructions and carry-less products, on vectors of 128 bits, in the forms of AVX
//   vaes       the same on 256 bits
//   vaes512    the same on 512 bits
bool has_instruction_set(std::string_view name);

// The code of one family that the processor can run, the fastest first. Family: a member of a struct with a static
// table for each set, `name` and pointers to the code of families, nullptr where the set has none.
template <auto Family>
auto runnable() {
  static constexpr auto find = []<class Tables, class Code>(Code Tables::*family) {
    std::vector<Code> found;
    for (const Tables* table : {
#if defined(__x86_64__)
             &Tables::vaes512, &Tables::vaes, &Tables::aesni, &Tables::avx512, &Tables::avx2,
#endif
             &Tables::baseline}) {
      if (table->*family != nullptr && has_instruction_set(table->name)) found.push_back(table->*family);
    }
    return found;
  };
  static constinit FirstUse<decltype(find(Family))> found;
  return std::span(found.get([] { return find(Family); }));
}

}  // namespace warpcipher
