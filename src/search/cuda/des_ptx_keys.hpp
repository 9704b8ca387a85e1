// SPDX-License-Identifier: Apache-2.0
// The bits of keys in a DES search kernel: where each is, and the shared memory that has them. Shared memory has, in
// this order: bits that differ between the granules of a block, spills of all threads, keys of known passes, tables of
// masks. When the loops are through, the full test takes the place of all but the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "search/cuda/des_layout.hpp"
#include "search/cuda/des_masks.hpp"
#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

// The text of a DES search kernel.
class DesText {
 public:
  std::uint32_t fresh() { return register_count_++; }
  std::uint32_t register_count() const { return register_count_; }
  static std::string name(std::uint32_t reg) { return "%r" + std::to_string(reg); }

  void line(const std::string& text) { body_ += text + ";\n"; }
  void label(const std::string& text) { body_ += text + ":\n"; }
  void append(const std::string& text) { body_ += text; }
  // Gives the text up to now away, and continues with none.
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

class DesKeys {
 public:
  // spills: of a thread.
  DesKeys(const DesCircuit& circuit, std::span<const std::uint8_t> positions, const DesLayout& layout,
          std::uint32_t granules, std::size_t spills);

  // Text that comes first: sets %thread, %granule and the registers of key bits.
  void write_start(DesText& text);
  // Text that fills the table of masks, which is known when all else has been written. It follows the start.
  void write_table(DesText& text) const;

  // Text that comes last: wipes shared memory.
  void write_end(DesText& text) const;

  // For each position a register, a constant or an address in shared memory.
  const DesMaskTable::Bits& bits() const { return bits_; }
  DesMaskTable& table() { return *table_; }
  KnownPass known_pass(std::size_t number) const;

  std::uint32_t threads() const { return granules_ << layout_.threads.size(); }  // of a block
  std::size_t shared_words() const;                                              // a multiple of threads()

  static std::string loop(std::size_t level) { return "%loop" + std::to_string(level); }

  // The positions of the bits that loops and threads set.
  static std::vector<std::size_t> varying(std::span<const std::uint8_t> positions, const DesLayout& layout);

 private:
  void load_planes(DesText& text);
  void spread(DesText& text, const std::vector<std::uint8_t>& bits, const char* source);
  void store_block_bits(DesText& text);
  void store_known_keys(DesText& text);

  std::string& bit_at(std::uint8_t bit) { return bits_[positions_[bit]]; }
  std::size_t group_words() const { return granules_ > 1 ? (layout_.blocks.size() + 31) / 32 * 32 : 0; }
  std::size_t words_before_spills() const { return group_words() * granules_; }
  std::size_t words_before_known_keys() const { return words_before_spills() + spills_ * threads(); }
  std::size_t words_before_table() const {
    return words_before_known_keys() + known_pass_words * circuit_.whole_passes().size();
  }

  const DesCircuit& circuit_;
  const std::span<const std::uint8_t> positions_;
  const DesLayout& layout_;
  const std::uint32_t granules_;
  const std::size_t spills_;
  DesMaskTable::Bits bits_;
  std::optional<DesMaskTable> table_;
};

}  // namespace warpcipher::search::cuda
