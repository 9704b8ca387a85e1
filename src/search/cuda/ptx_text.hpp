// SPDX-License-Identifier: Apache-2.0
// Text that all writers of PTX need.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warpcipher::search::cuda::ptx {

// Truth tables for lop3: bit 4 a + 2 b + c is the result for these inputs.
inline constexpr unsigned xor3_table = 0x96;        // a ^ b ^ c
inline constexpr unsigned xor_last_table = 0x5a;    // a ^ c
inline constexpr unsigned gather_table = 0xf6;      // a | (b ^ c)
inline constexpr unsigned add_masked_table = 0x6a;  // (a & b) ^ c
inline constexpr unsigned and3_table = 0x80;        // a & b & c

// The operand of a load or store: offset in bytes.
inline std::string address(std::string_view base, std::size_t offset) {
  return "[" + std::string(base) + "+" + std::to_string(offset) + "]";
}

// A kernel up to its opening brace: its parameters are bytes, its shared memory is `kept`, and a multiprocessor may
// give one block all registers.
inline std::string kernel_begin(std::string_view name, std::size_t parameter_len, std::size_t threads,
                                std::size_t shared_align) {
  return ".version 6.4\n.target sm_75\n.address_size 64\n.extern .shared .align " + std::to_string(shared_align) +
         " .b8 kept[];\n.visible .entry " + std::string(name) + "(.param .align 8 .b8 parameters[" +
         std::to_string(parameter_len) + "])\n.maxntid " + std::to_string(threads) + ", 1, 1\n.minnctapersm 1\n{\n";
}

}  // namespace warpcipher::search::cuda::ptx
