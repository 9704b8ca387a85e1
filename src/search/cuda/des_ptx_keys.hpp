// SPDX-License-Identifier: Apache-2.0
// The bits of keys in a DES search kernel: where each is, and the shared memory that has them. Shared memory has, in
// this order: bits that differ between the granules of a block, spills of all threads, keys of known passes, tables of
// masks. When the loops are through, the full test takes the place of all but the first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "search/cuda/des_known_pass.hpp"
#include "search/cuda/des_layout.hpp"
#include "search/cuda/des_masks.hpp"
#include "search/cuda/des_ptx_text.hpp"

namespace warpcipher::search::cuda {

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
