// SPDX-License-Identifier: Apache-2.0
// The text of a DES search kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

class DesText {
 public:
  std::uint32_t fresh() { return register_count_++; }
  std::uint32_t register_count() const { return register_count_; }
  static std::string name(std::uint32_t reg) { return "%r" + std::to_string(reg); }

  void line(const std::string& text) { body_ += text + ";\n"; }
  void label(const std::string& text) { body_ += text + ":\n"; }
  void append(const std::string& text) { body_ += text; }
  // Gives the text up to now away, and goes on with none.
  std::string take() { return std::exchange(body_, {}); }

  void load_parameter(const std::string& to, std::size_t offset) {
    line("ld.param.u32 " + to + ", " + ptx::address("parameters", offset));
  }
  // Volatile: otherwise the compiler would keep it in registers.
  std::uint32_t load_shared(const std::string& address) {
    const std::uint32_t reg = fresh();
    line("ld.volatile.shared.u32 " + name(reg) + ", " + address);
    return reg;
  }
  void store_shared(const std::string& address, const std::string& value) {
    line("st.volatile.shared.u32 " + address + ", " + value);
  }

  std::uint32_t lut3(unsigned table, std::uint32_t a, std::uint32_t b, const std::string& c) {
    const std::uint32_t reg = fresh();
    line("lop3.b32 " + name(reg) + ", " + name(a) + ", " + name(b) + ", " + c + ", " + std::to_string(table));
    return reg;
  }

 private:
  std::string body_;
  std::uint32_t register_count_ = 0;
};

}  // namespace warpcipher::search::cuda
