// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_ptx_keys.hpp"

#include <algorithm>
#include <utility>

#include "search/cuda/des_check.hpp"
#include "search/cuda/des_ptx.hpp"

namespace warpcipher::search::cuda {

namespace {

constexpr std::array lane_masks{"0xaaaaaaaa", "0xcccccccc", "0xf0f0f0f0", "0xff00ff00", "0xffff0000"};

}  // namespace

DesKeys::DesKeys(const DesCircuit& circuit, std::span<const std::uint8_t> positions, const DesLayout& layout,
                 std::uint32_t granules, std::size_t spills)
    : circuit_(circuit), positions_(positions), layout_(layout), granules_(granules), spills_(spills) {}

std::vector<std::size_t> DesKeys::varying(std::span<const std::uint8_t> positions, const DesLayout& layout) {
  std::vector<std::size_t> found;
  for (const auto* bits : {&layout.loops, &layout.threads}) {
    for (const std::uint8_t bit : *bits) found.push_back(positions[bit]);
  }
  return found;
}

void DesKeys::write_start(DesText& text) {
  text.line("mov.u32 %thread, %tid.x");
  text.line("mov.u32 %granule, %ctaid.x");
  text.line("mov.u32 %spills, kept");
  text.line("mad.lo.u32 %spills, %thread, 4, %spills");
  text.line("add.u32 %spills, %spills, " + std::to_string(4 * words_before_spills()));
  text.load_parameter("%zero", offsetof(DesParameters, zero));
  load_planes(text);
  for (std::size_t i = 0; i < lane_bits; ++i) bit_at(layout_.lanes[i]) = lane_masks[i];
  text.line("mov.u32 %group, 0");
  if (granules_ > 1) {
    text.line("shr.u32 %group, %thread, " + std::to_string(layout_.threads.size()));
    text.line("and.b32 %thread, %thread, " + std::to_string((1u << layout_.threads.size()) - 1));
    text.line("mad.lo.u32 %granule, %granule, " + std::to_string(granules_) + ", %group");
  }
  spread(text, layout_.threads, "%thread");
  text.load_parameter("%first", offsetof(DesParameters, granule));
  text.line("add.u32 %first, %first, %granule");
  spread(text, layout_.blocks, "%first");
  if (granules_ > 1) store_block_bits(text);
  store_known_keys(text);
  for (std::size_t i = 0; i < layout_.loops.size(); ++i) {
    bit_at(layout_.loops[i]) = loop(i);
    text.line("mov.u32 " + loop(i) + ", %zero");
  }
  std::vector<DesMaskTable::Varying> in_registers;
  for (const std::size_t position : varying(positions_, layout_)) in_registers.push_back({position, bits_[position]});
  table_.emplace(std::move(in_registers));
}

// The bits of all keys that the circuit has.
void DesKeys::load_planes(DesText& text) {
  std::array<bool, most_des_keys> used{};
  for (const DesPass& pass : circuit_.passes()) used[pass.key] = true;
  for (std::size_t position = 0; position < most_key_bits; ++position) {
    if (!used[position / des_key_bits]) continue;
    bits_[position] = DesText::name(text.fresh());
    text.load_parameter(bits_[position], offsetof(DesParameters, planes) + 4 * position);
  }
}

void DesKeys::spread(DesText& text, const std::vector<std::uint8_t>& bits, const char* source) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bit_at(bits[i]) = DesText::name(text.fresh());
    text.line("bfe.s32 " + bit_at(bits[i]) + ", " + source + ", " + std::to_string(i) + ", 1");
  }
}

// The masks of block bits, equal in a granule but not in a block: too many for registers.
void DesKeys::store_block_bits(DesText& text) {
  text.line("mov.u32 %group_masks, kept");
  text.line("mad.lo.u32 %group_masks, %group, " + std::to_string(4 * group_words()) + ", %group_masks");
  for (std::size_t i = 0; i < layout_.blocks.size(); ++i) {
    const std::string address = ptx::address("%group_masks", 4 * i);
    text.store_shared(address, bit_at(layout_.blocks[i]));
    bit_at(layout_.blocks[i]) = address;
  }
  text.line("bar.sync 0");
}

std::size_t DesKeys::shared_words() const {
  const std::size_t words = std::max(words_before_table() + granules_ * table_->size() / 4,
                                     words_before_spills() + DesCheck::key_words * threads());
  return (words + threads() - 1) / threads() * threads();
}

KnownPass DesKeys::known_pass(std::size_t number) const {
  KnownPass pass;
  pass.pass = circuit_.whole_passes()[number].pass;
  pass.prefix = "known" + std::to_string(number);
  pass.shared = "%" + pass.prefix + "_words";
  const std::size_t first = des_key_bits * pass.pass.key;
  for (std::size_t i = 0; i < des_key_bits; ++i) pass.planes[i] = bits_[first + i];
  return pass;
}

// The same for a launch.
void DesKeys::store_known_keys(DesText& text) {
  const std::size_t count = circuit_.whole_passes().size();
  for (std::size_t number = 0; number < count; ++number) {
    const KnownPass pass = known_pass(number);
    const std::size_t words = words_before_known_keys() + known_pass_words * number;
    text.line(".reg .u32 " + pass.shared);
    text.line("mov.u32 " + pass.shared + ", kept");
    text.line("add.u32 " + pass.shared + ", " + pass.shared + ", " + std::to_string(4 * words));
    text.append(write_known_pass_masks(pass));
  }
}

void DesKeys::write_table(DesText& text) const {
  text.line(".reg .u32 %table");
  text.line("mov.u32 %table, kept");
  text.line("mad.lo.u32 %table, %group, " + std::to_string(table_->size()) + ", %table");
  text.line("add.u32 %table, %table, " + std::to_string(4 * words_before_table()));
  text.append(table_->write(bits_, "%table"));
  text.line("bar.sync 0");
}

void DesKeys::write_end(DesText& text) const {
  text.line(".reg .u32 %wiped, %wipe_end");
  text.line("mov.u32 %wiped, kept");
  text.line("mov.u32 %wipe_end, %tid.x");
  text.line("mad.lo.u32 %wiped, %wipe_end, 4, %wiped");
  text.line("add.u32 %wipe_end, %wiped, " + std::to_string(4 * shared_words()));
  text.line("bar.sync 0");
  text.label("$wipe");
  text.line("st.volatile.shared.u32 [%wiped], 0");
  text.line("add.u32 %wiped, %wiped, " + std::to_string(4 * threads()));
  text.line("setp.ne.u32 %again, %wiped, %wipe_end");
  text.line("@%again bra $wipe");
}

}  // namespace warpcipher::search::cuda
