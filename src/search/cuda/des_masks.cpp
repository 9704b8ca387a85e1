// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_masks.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "cipher/des_bitslice.hpp"
#include "core/fork.hpp"
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

namespace {

constexpr int rounds = 16;
constexpr std::size_t subkey_bits = 48;
constexpr std::size_t half_bits = 32;
constexpr std::size_t twice_used = 16;  // bits that two S-boxes take
constexpr std::size_t masks_of_round = half_bits + 2 * twice_used;
constexpr std::size_t masks_of_load = 4;
static_assert(known_pass_words == rounds * masks_of_round);

constexpr std::size_t none = subkey_bits;

// The subkey bits that are added to each bit of a half: for the first S-box that takes it, and for the second, or
// `none`.
struct Uses {
  std::array<std::size_t, half_bits> first, second;
};

constexpr Uses find_uses() {
  Uses uses{};
  uses.first.fill(none);
  uses.second.fill(none);
  for (std::size_t n = 0; n < subkey_bits; ++n) {
    const std::size_t bit = des::expansion[n] - 1u;
    (uses.first[bit] == none ? uses.first : uses.second)[bit] = n;
  }
  return uses;
}

constexpr Uses uses = find_uses();

// The bits that two S-boxes take, in order.
constexpr std::array<std::size_t, twice_used> find_shared_bits() {
  std::array<std::size_t, twice_used> bits{};
  std::size_t count = 0;
  for (std::size_t bit = 0; bit < half_bits; ++bit) {
    if (uses.second[bit] != none) bits[count++] = bit;
  }
  return bits;
}

constexpr auto shared_bits = find_shared_bits();

const DesCircuit& round_circuit() {
  static constinit FirstUse<DesCircuit> round;
  return round.get([] { return DesCircuit::one_round(); });
}

// The position of bit n of the subkey of a round, from 1.
std::size_t position_of(const DesPass& pass, int round, std::size_t n) {
  const auto subkey = static_cast<std::size_t>(pass.backwards ? rounds - round : round - 1);
  return des::bitslice::subkey_positions[subkey_bits * subkey + n];
}

// The mask on bit i of a pass's input or output: k of a round for the last 32 bits.
KeyBits key_of_half(const DesPass& pass, int round, std::size_t i) {
  if (i < half_bits) return {};
  return KeyBits(des_key_bits * pass.key + position_of(pass, round, uses.first[i - half_bits]));
}

class PassWriter {
 public:
  explicit PassWriter(const KnownPass& pass) : pass_(pass), round_(round_circuit()) {}

  std::string write_masks() {
    declare();
    for (int round = 1; round <= rounds; ++round) {
      const std::size_t first = masks_of_round * static_cast<std::size_t>(round - 1);
      for (std::size_t bit = 0; bit < half_bits; ++bit) {
        const std::size_t n = uses.first[bit];
        store_sum(first + bit, round > 1 ? plane(round - 1, n) : "", round < rounds ? plane(round + 1, n) : "");
      }
      for (std::size_t i = 0; i < shared_bits.size(); ++i) {
        const std::size_t bit = shared_bits[i];
        store_sum(first + half_bits + 2 * i, plane(round, uses.first[bit]), plane(round, uses.second[bit]));
        line("mad.lo.u32 " + reg("sum") + ", " + reg("sum") + ", 2, 1");
        store(first + half_bits + 2 * i + 1, reg("sum"));
      }
    }
    return text_;
  }

  std::string write() {
    for (std::size_t i = 0; i < 2 * half_bits; ++i)
      line("mov.u32 " + half(i / half_bits, i % half_bits) + ", " + pass_.from[i]);
    line("mov.u32 " + reg("at") + ", " + pass_.shared);
    line("mov.u32 " + reg("pair") + ", 0");
    const std::string label = "$" + pass_.prefix + "_pair";
    text_ += label + ":\n";
    add_round(0);
    add_round(1);
    line("add.u32 " + reg("at") + ", " + reg("at") + ", " + std::to_string(2 * 4 * masks_of_round));
    line("add.u32 " + reg("pair") + ", " + reg("pair") + ", 1");
    line("setp.ne.u32 " + reg("on") + ", " + reg("pair") + ", " + std::to_string(rounds / 2));
    line("@" + reg("on") + " bra " + label);
    // Now half 0 of the registers is half 16 with its key added; half 1 is half 17 without a key.
    for (std::size_t i = 0; i < 2 * half_bits; ++i)
      line("mov.u32 " + pass_.to[i] + ", " + half(1 - i / half_bits, i % half_bits));
    return text_;
  }

 private:
  void line(const std::string& text) { text_ += text + ";\n"; }
  std::string reg(const std::string& name) const { return "%" + pass_.prefix + "_" + name; }
  std::string half(std::size_t which, std::size_t i) const {
    return reg("half") + std::to_string(half_bits * which + i);
  }
  std::string mask(std::size_t i) const { return reg("mask") + std::to_string(i); }

  void declare() {
    const auto registers = [&](const char* name, std::size_t count) {
      line(".reg .u32 " + reg(name) + "<" + std::to_string(count) + ">");
    };
    line(".reg .pred " + reg("on"));
    line(".reg .u32 " + reg("at") + ", " + reg("pair") + ", " + reg("sum"));
    registers("half", 2 * half_bits);
    registers("mask", masks_of_round);
    registers("input", subkey_bits);
    registers("gate", 2 * round_.nodes().size());
  }

  const std::string& plane(int round, std::size_t n) const { return pass_.planes[position_of(pass_.pass, round, n)]; }

  static std::string address(const std::string& base, std::size_t word) { return ptx::address(base, 4 * word); }
  // Volatile: otherwise the compiler would keep it in registers.
  void store(std::size_t word, const std::string& value) {
    line("st.volatile.shared.u32 " + address(pass_.shared, word) + ", " + value);
  }
  void store_sum(std::size_t word, const std::string& a, const std::string& b) {
    if (a.empty() || b.empty()) return store(word, a.empty() ? b : a);
    line("xor.b32 " + reg("sum") + ", " + a + ", " + b);
    store(word, reg("sum"));
  }
  void load(const std::string& base, std::size_t word, std::size_t first) {
    line("ld.volatile.shared.v4.u32 {" + mask(first) + ", " + mask(first + 1) + ", " + mask(first + 2) + ", " +
         mask(first + 3) + "}, " + address(base, word));
  }

  // Replaces half `other` of the registers by the half after next; f takes the other half.
  void add_round(std::size_t other) {
    for (std::size_t i = 0; i < masks_of_round; i += masks_of_load) load(reg("at"), masks_of_round * other + i, i);
    for (std::size_t i = 0; i < shared_bits.size(); ++i) {
      const std::size_t bit = shared_bits[i];
      line("mad.lo.u32 " + reg("input") + std::to_string(uses.second[bit]) + ", " + half(1 - other, bit) + ", " +
           mask(half_bits + 2 * i + 1) + ", " + mask(half_bits + 2 * i));
    }
    const auto nodes = round_.nodes();
    std::vector<std::string> names(nodes.size());
    std::vector<bool> sums(nodes.size());
    for (const Comparison& result : round_.comparisons()) sums[result.forward] = true;
    for (NodeId node = 0; node < nodes.size(); ++node) {
      const Node& source = nodes[node];
      if (source.kind == Node::Kind::input) {
        names[node] = half(other, source.table % half_bits);
      } else if (source.kind == Node::Kind::keyed) {
        const std::size_t bit = nodes[source.a].table - half_bits;
        names[node] =
            uses.first[bit] == source.table ? half(1 - other, bit) : reg("input") + std::to_string(source.table);
      } else if (!sums[node]) {
        names[node] = reg("gate") + std::to_string(node + other * nodes.size());
        add_gate(names[node], names[source.a], names[source.b], names[source.c], source.table);
      }
    }
    for (const Comparison& result : round_.comparisons()) {
      const Node& sum = nodes[result.forward];  // of a bit of the left half and an S-box's
      const std::string& bit = names[result.backward];
      add_gate(bit, bit, names[sum.b], mask(nodes[result.backward].table), ptx::xor3_table);
    }
  }

  void add_gate(const std::string& to, const std::string& a, const std::string& b, const std::string& c,
                unsigned table) {
    line("lop3.b32 " + to + ", " + a + ", " + b + ", " + c + ", " + std::to_string(table));
  }

  const KnownPass& pass_;
  const DesCircuit& round_;
  std::string text_;
};

}  // namespace

std::size_t known_pass_gates() {
  std::size_t gates = 0;
  for (const Node& node : round_circuit().nodes()) gates += node.kind == Node::Kind::gate ? 1 : 0;
  return rounds * gates;
}

KeyBits known_pass_input_mask(const DesPass& pass, std::size_t i) { return key_of_half(pass, 1, i); }

KeyBits known_pass_output_mask(const DesPass& pass, std::size_t i) { return key_of_half(pass, rounds, i); }

std::string write_known_pass_masks(const KnownPass& pass) { return PassWriter(pass).write_masks(); }

std::string write_known_pass(const KnownPass& pass) { return PassWriter(pass).write(); }

}  // namespace warpcipher::search::cuda
