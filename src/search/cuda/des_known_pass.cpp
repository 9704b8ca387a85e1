// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_known_pass.hpp"

#include <algorithm>
#include <vector>

#include "cipher/des_bitslice.hpp"
#include "core/fork.hpp"
#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

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
