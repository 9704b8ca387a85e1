// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_masks.hpp"

#include <algorithm>
#include <limits>

#include "search/cuda/des_known_pass.hpp"
#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

namespace {

// Costs in cycles of a scheduler. A gate takes two, any other instruction about one.
constexpr double gate_cycles = 2;
constexpr double load_cycles = 1;
constexpr double shared_load_cycles = 0.3;  // one of four words

std::vector<std::size_t> positions_in(const KeyBits& mask) {
  std::vector<std::size_t> found;
  for (std::size_t position = 0; position < most_key_bits; ++position) {
    if (mask.has(position)) found.push_back(position);
  }
  return found;
}

}  // namespace

DesMasks::DesMasks(const DesCircuit& circuit, const DesPlacement& placement, std::span<const Comparison> compared,
                   std::span<const std::size_t> varying)
    : masked_(circuit.nodes().size()), masks_(circuit.nodes().size()) {
  const std::span<const Node> nodes = circuit.nodes();
  // The masks with which S-boxes, known passes and comparisons take a node.
  std::vector<std::vector<KeyBits>> uses(nodes.size());
  for (NodeId node = 0; node < nodes.size(); ++node) {
    if (!placement.is_needed(node) || placement.level_of(node) != 0) continue;
    masked_[node] = placement.is_sum(node);
    if (nodes[node].kind == Node::Kind::keyed) uses[nodes[node].a].emplace_back(nodes[node].table);
    if (nodes[node].kind != Node::Kind::whole) continue;
    const WholePass& whole = circuit.whole_passes()[nodes[node].a];
    const std::size_t bit = nodes[node].table;
    uses[whole.from[bit]].push_back(known_pass_input_mask(whole.pass, bit));
    masks_[node] = known_pass_output_mask(whole.pass, bit);
  }
  for (const Comparison& comparison : compared) {
    uses[comparison.forward].emplace_back();
    uses[comparison.backward].emplace_back();
  }

  const auto cost_of = [&](const KeyBits& mask) {
    const std::vector<std::size_t> bits = positions_in(mask);
    const auto from_registers = static_cast<std::size_t>(
        std::ranges::count_if(bits, [&](std::size_t bit) { return std::ranges::find(varying, bit) != varying.end(); }));
    if (bits.empty() || bits.size() == 1) return 0.0;
    const double load = from_registers == bits.size() ? 0 : from_registers > 0 ? load_cycles : shared_load_cycles;
    return load + (from_registers > 1 ? gate_cycles * static_cast<double>(from_registers - 1) : 0);
  };
  const auto cost_of_use = [&](const KeyBits& mask) { return mask.empty() ? 0.0 : gate_cycles + cost_of(mask); };
  for (NodeId node = 0; node < nodes.size(); ++node) {
    if (!masked_[node]) continue;
    const KeyBits left = masks_[nodes[node].a];
    std::vector<KeyBits> choices{KeyBits(), left};
    choices.insert(choices.end(), uses[node].begin(), uses[node].end());
    double least = std::numeric_limits<double>::infinity();
    for (const KeyBits& choice : choices) {
      double cost = cost_of(left ^ choice);
      for (const KeyBits& use : uses[node]) cost += cost_of_use(choice ^ use);
      if (cost >= least) continue;
      least = cost;
      masks_[node] = choice;
    }
  }
}

std::vector<std::string> DesMaskTable::operands(const KeyBits& mask, const Bits& bits, std::string& text) {
  std::vector<std::string> found;
  std::size_t last = varying_.size();  // of the mask's varying bits
  KeyBits rest = mask;
  for (std::size_t i = 0; i < varying_.size(); ++i) {
    if (!mask.has(varying_[i].position)) continue;
    rest = rest ^ KeyBits(varying_[i].position);
    if (last != varying_.size()) found.push_back(varying_[last].mask);
    last = i;
  }
  const std::vector<std::size_t> others = positions_in(rest);
  if (others.empty()) {
    if (last != varying_.size()) found.push_back(varying_[last].mask);
  } else if (last != varying_.size()) {
    const std::string to = pair(pairs_.size());
    text += "ld.volatile.shared.u32 " + to + ", " + pair_address(last) + ";\n";
    pairs_.push_back(rest);
    found.push_back(to);
  } else if (others.size() == 1 && bits[others[0]][0] != '[') {
    found.push_back(bits[others[0]]);
  } else {
    const std::size_t i = singles_.size();
    if (i % words_of_load == 0) {
      text += "ld.volatile.shared.v4.u32 {" + loaded(i) + ", " + loaded(i + 1) + ", " + loaded(i + 2) + ", " +
              loaded(i + 3) + "}, " + ptx::address("%masks", 4 * i) + ";\n";
    }
    singles_.push_back(rest);
    found.push_back(loaded(i));
  }
  return found;
}

std::vector<std::string> DesMaskTable::factors(const KeyBits& mask, const Bits& bits, std::string& text) {
  std::size_t varying = varying_.size();
  KeyBits rest = mask;
  for (const std::size_t position : positions_in(mask)) {
    if (bits[position].starts_with("0x")) return {};  // a lane's bit
    for (std::size_t i = 0; i < varying_.size(); ++i) {
      if (varying_[i].position != position) continue;
      if (varying != varying_.size()) return {};
      varying = i;
      rest = rest ^ KeyBits(position);
    }
  }
  if (varying != varying_.size()) {
    const std::size_t i = pairs_.size();
    text += "ld.volatile.shared.v2.u32 {" + pair(i) + ", " + pair_factor(i) + "}, " + pair_address(varying) + ";\n";
    pairs_.push_back(rest);
    return {pair(i), pair_factor(i)};
  }
  const std::size_t i = 2 * factors_.size();
  if (i % words_of_load == 0) {
    text += "ld.volatile.shared.v4.u32 {" + factor(i) + ", " + factor(i + 1) + ", " + factor(i + 2) + ", " +
            factor(i + 3) + "}, " + ptx::address("%factors", 4 * i) + ";\n";
  }
  factors_.push_back(rest);
  return {factor(i), factor(i + 1)};
}

void DesMaskTable::sum(const KeyBits& mask, const Bits& bits, std::string& text) const {
  if (mask.empty()) text += "mov.u32 %mask_sum, 0;\n";
  bool first = true;
  for (const std::size_t position : positions_in(mask)) {
    std::string operand = bits[position];
    if (operand[0] == '[') {
      text += "ld.volatile.shared.u32 %mask_bit, " + operand + ";\n";
      operand = "%mask_bit";
    }
    text += first ? "mov.u32 %mask_sum, " + operand + ";\n" : "xor.b32 %mask_sum, %mask_sum, " + operand + ";\n";
    first = false;
  }
}

std::string DesMaskTable::write(const Bits& bits, const std::string& at) const {
  const std::size_t first_factor = entry_len * ((singles_.size() + 3) / 4);
  const std::size_t first_pair = first_factor + entry_len * ((factors_.size() + 1) / 2);
  std::string text = ".reg .u32 %masks, %factors, %mask_sum, %mask_bit;\n";
  const auto declare = [&](const char* name, std::size_t count) {
    text += std::string(".reg .u32 ") + name + "<" + std::to_string(count + words_of_load) + ">;\n";
  };
  declare("%mask", singles_.size());
  declare("%factor", 2 * factors_.size());
  declare("%pair", pairs_.size());
  declare("%pair_factor", pairs_.size());
  declare("%flip", varying_.size());
  const auto store = [&](std::size_t offset) {
    text += "st.volatile.shared.u32 " + ptx::address("%masks", offset) + ", %mask_sum;\n";
  };
  const auto store_factors = [&](std::size_t offset) {
    store(offset);
    text += "shl.b32 %mask_bit, %mask_sum, 1;\nor.b32 %mask_bit, %mask_bit, 1;\n";
    text += "st.volatile.shared.u32 " + ptx::address("%masks", offset + 4) + ", %mask_bit;\n";
  };
  text += "mov.u32 %masks, " + at + ";\n";
  text += "add.u32 %factors, %masks, " + std::to_string(first_factor) + ";\n";
  for (std::size_t i = 0; i < singles_.size(); ++i) {
    sum(singles_[i], bits, text);
    store(4 * i);
  }
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    sum(factors_[i], bits, text);
    store_factors(first_factor + 8 * i);
  }
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    sum(pairs_[i], bits, text);
    store_factors(first_pair + entry_len * i);
    text += "not.b32 %mask_sum, %mask_sum;\n";
    store_factors(first_pair + entry_len * i + 8);
  }
  for (std::size_t i = 0; i < varying_.size(); ++i) {
    text += "and.b32 " + address_of(i) + ", " + varying_[i].mask + ", 8;\n";
    text += "add.u32 " + address_of(i) + ", " + address_of(i) + ", %masks;\n";
    text += "add.u32 " + address_of(i) + ", " + address_of(i) + ", " + std::to_string(first_pair) + ";\n";
  }
  return text;
}

std::string DesMaskTable::flip(std::size_t position) const {
  for (std::size_t i = 0; i < varying_.size(); ++i) {
    if (varying_[i].position != position) continue;
    return "xor.b32 " + address_of(i) + ", " + address_of(i) + ", 8;\n";
  }
  return {};
}

}  // namespace warpcipher::search::cuda
