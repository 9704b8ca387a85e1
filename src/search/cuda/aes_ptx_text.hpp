// SPDX-License-Identifier: Apache-2.0
// The text of an AES search kernel: one body for each loop, and the instructions for sums and lookups.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

class AesText {
 public:
  using Register = std::string;

  static constexpr std::size_t copies_len = 128;  // bytes of the copies of an entry, one for each lane
  static constexpr std::size_t table_len = 256 * copies_len;

  // levels: of loops. tables: 4, or 2, where T2 and T3 are T0 and T1 rotated.
  AesText(std::size_t levels, std::size_t tables) : bodies_(levels + 1), tables_(tables) {}

  // The level of instructions outside all loops.
  std::size_t top() const { return bodies_.size() - 1; }
  const std::string& body(std::size_t level) const { return bodies_[level]; }
  std::size_t register_count() const { return register_count_; }

  static std::string number(std::size_t value) { return std::to_string(value); }
  Register fresh() { return "%r" + number(register_count_++); }
  void line(std::size_t level, const std::string& text) { bodies_[level] += text + ";\n"; }
  void label(std::size_t level, const std::string& name) { bodies_[level] += name + ":\n"; }

  // The sum of registers or constants, at least one.
  Register add(std::size_t level, const std::vector<std::string>& operands) {
    Register sum = operands.front();
    for (std::size_t i = 1; i < operands.size();) {
      const Register next = fresh();
      if (i + 1 < operands.size()) {
        line(level, "lop3.b32 " + next + ", " + sum + ", " + operands[i] + ", " + operands[i + 1] + ", " +
                        number(ptx::xor3_table));
        i += 2;
      } else {
        line(level, "xor.b32 " + next + ", " + sum + ", " + operands[i]);
        i += 1;
      }
      sum = next;
    }
    return sum;
  }

  // sum ^ (byte `byte` of word); an empty sum is 0.
  Register add_byte(std::size_t level, const Register& sum, const Register& word, std::size_t byte) {
    const Register next = fresh();
    const std::string mask = number(std::size_t{0xff} << 8 * byte);
    if (sum.empty()) {
      line(level, "and.b32 " + next + ", " + word + ", " + mask);
    } else {
      line(level, "lop3.b32 " + next + ", " + word + ", " + mask + ", " + sum + ", " + number(ptx::add_masked_table));
    }
    return next;
  }

  // The entry of T_table for a byte of a word. With two tables, the caller rotates an entry of T2 and T3 by 16.
  Register look_up(std::size_t level, const Register& word, std::size_t byte, std::size_t table) {
    const Register place = fresh();
    const Register entry = fresh();
    line(level, "dp4a.u32.u32 " + place + ", " + word + ", " + number(std::size_t{128} << 8 * byte) + ", %lane");
    line(level, "ld.shared.u32 " + entry + ", " + ptx::address(place, table % tables_ * table_len));
    return entry;
  }

  Register rotate(std::size_t level, const Register& word) {
    const Register rotated = fresh();
    line(level, "prmt.b32 " + rotated + ", " + word + ", 0, " + number(0x1032));
    return rotated;
  }

  // An entry with the S-box value in byte `to`. T0 has it in bytes 1 and 2, T1 in bytes 2 and 3, and so on.
  Register look_up_sbox(std::size_t level, const Register& word, std::size_t byte, std::size_t to) {
    const std::size_t table = (to + 3) % 4 < tables_ ? (to + 3) % 4 : (to + 2) % 4;
    const Register entry = look_up(level, word, byte, table);
    return table < tables_ ? entry : rotate(level, entry);
  }

 private:
  std::vector<std::string> bodies_;  // by level; the last is outside all loops
  std::size_t tables_;
  std::size_t register_count_ = 0;
};

}  // namespace warpcipher::search::cuda
