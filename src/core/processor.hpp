// SPDX-License-Identifier: Apache-2.0
// The instruction sets that vector code is compiled for, a file of src/instruction_sets/ each. This processor may lack
// some of them.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

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

// The part of one family that the processor can run: of tables with a `name`, an instruction set, and a pointer to the
// family's code, which is nullptr where the set has none. In the order of the tables.
template <auto Family, class Tables>
auto runnable(const Tables& tables) {
  using Code = std::remove_reference_t<decltype(tables.front()->*Family)>;
  std::vector<std::remove_const_t<Code>> found;
  for (const auto* table : tables) {
    if (table->*Family != nullptr && has_instruction_set(table->name)) found.push_back(table->*Family);
  }
  return found;
}

}  // namespace warpcipher
