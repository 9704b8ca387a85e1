// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_ptx.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "search/cuda/des_check.hpp"
#include "search/cuda/des_known_pass.hpp"
#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

namespace {

constexpr std::array lane_masks{"0xaaaaaaaa", "0xcccccccc", "0xf0f0f0f0", "0xff00ff00", "0xffff0000"};

constexpr std::uint32_t no_register = ~std::uint32_t{0};

class Writer {
 public:
  Writer(const DesCircuit& circuit, std::span<const Comparison> compared, std::span<const std::uint8_t> positions,
         const DesLayout& layout, const DesPolicy& policy)
      : circuit_(circuit),
        compared_(compared),
        positions_(positions),
        layout_(layout),
        policy_(policy),
        levels_(positions, layout.loops),
        placement_(circuit, compared, levels_, policy),
        registers_(circuit.nodes().size(), no_register),
        doubled_(circuit.nodes().size(), no_register) {}

  DesKernel write() {
    begin();
    for (level_ = levels_.count(); level_-- > 0;) {
      if (level_ + 1 < levels_.count()) label(loop_label(level_));
      if (level_ == 0) begin_turn();
      for (NodeId node = 0; node < registers_.size(); ++node) {
        if (placement_.level_of(node) == level_ && placement_.at_once(node)) settle(node);
        if (level_ == 0) keep_in_step();
      }
      if (level_ == 0) break;
      forget();
    }
    compare();
    end();
    return finish();
  }

 private:
  // --- text ---

  std::uint32_t fresh() { return register_count_++; }
  static std::string name(std::uint32_t reg) { return "%r" + std::to_string(reg); }
  void line(const std::string& text) { body_ += text + ";\n"; }
  void label(const std::string& text) { body_ += text + ":\n"; }
  static std::string loop(std::size_t level) { return "%loop" + std::to_string(level); }
  static std::string loop_label(std::size_t level) { return "$loop" + std::to_string(level); }
  void load_parameter(const std::string& to, std::size_t offset) {
    line("ld.param.u32 " + to + ", " + ptx::address("parameters", offset));
  }
  std::uint32_t load_shared(const std::string& address) {
    const std::uint32_t reg = fresh();
    line("ld.volatile.shared.u32 " + name(reg) + ", " + address);
    return reg;
  }
  // Volatile: otherwise the compiler would keep it in registers.
  void store_shared(const std::string& address, const std::string& value) {
    line("st.volatile.shared.u32 " + address + ", " + value);
  }

  std::uint32_t threads() const { return policy_.granules << layout_.threads.size(); }
  std::string slot_address(NodeId node) const {
    return ptx::address("%slots", 4 * std::size_t{placement_.slot(node)} * threads());
  }

  // --- values ---

  // Computes a node. If only one S-box takes a bit of a half block, the same gate adds its key bit; the gate that
  // computes the half after next removes the key bit again.
  void settle(NodeId node) {
    if (registers_[node] != no_register) return;
    const NodeId use = placement_.only_use(node);
    const Node& sum = circuit_.nodes()[node];
    if (!policy_.fold || level_ != 0 || use == node || is_folded(sum.a)) {
      value(node);
      return;
    }
    const std::uint32_t left = value(sum.a);
    const std::uint32_t right = value(sum.b);
    remember(use, lut3(ptx::xor3_table, left, right, mask_of(use)));
  }

  // Whether the node is available only with its key bit added.
  bool is_folded(NodeId node) const {
    const NodeId use = placement_.only_use(node);
    return use != node && registers_[node] == no_register && registers_[use] != no_register && policy_.fold;
  }

  // The register that holds a node at the present level; writes the instructions that compute it, if needed.
  std::uint32_t value(NodeId node) {
    if (registers_[node] != no_register) return registers_[node];
    const Node& source = circuit_.nodes()[node];
    if (source.kind == Node::Kind::input) return inputs_[source.table];
    const bool outer = placement_.level_of(node) > level_;
    const bool kept = placement_.slot(node) != no_slot;
    if (source.kind == Node::Kind::whole && !(kept && outer)) {
      if (outer) throw Error(Status::engine_failure, "the DES search kernel has no slot for a bit of a known pass");
      run_known_pass(source.a);
      return registers_[node];
    }
    std::uint32_t reg = no_register;
    if (kept && outer) {
      reg = load_shared(slot_address(node));
    } else if (source.kind == Node::Kind::keyed) {
      reg = add_key(node);
    } else if (is_folded(node)) {
      const NodeId use = placement_.only_use(node);
      reg = lut3(ptx::xor_last_table, registers_[use], registers_[use], mask_of(use));
    } else if (placement_.is_sum(node) && is_folded(source.a)) {
      const NodeId use = placement_.only_use(source.a);
      const std::uint32_t right = value(source.b);
      reg = lut3(ptx::xor3_table, registers_[use], right, mask_of(use));
    } else {
      const std::uint32_t a = value(source.a);
      const std::uint32_t b = value(source.b);
      const std::uint32_t c = value(source.c);
      reg = lut3(source.table, a, b, name(c));
    }
    if (kept && !outer) store_shared(slot_address(node), name(reg));
    remember(node, reg);
    return reg;
  }

  // Gives each output bit of a known pass a register.
  void run_known_pass(std::size_t number) {
    KnownPass pass = known_pass(number);
    const WholePass& whole = circuit_.whole_passes()[number];
    for (std::size_t i = 0; i < whole.from.size(); ++i) pass.from[i] = name(value(whole.from[i]));
    std::array<std::uint32_t, 64> results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i] = fresh();
      pass.to[i] = name(results[i]);
    }
    body_ += write_known_pass(pass);
    count_gates(known_pass_gates());
    for (NodeId node = 0; node < registers_.size(); ++node) {
      const Node& bit = circuit_.nodes()[node];
      if (bit.kind != Node::Kind::whole || bit.a != number) continue;
      if (placement_.slot(node) != no_slot) store_shared(slot_address(node), pass.to[bit.table]);
      remember(node, results[bit.table]);
    }
  }

  void remember(NodeId node, std::uint32_t reg) {
    registers_[node] = reg;
    present_.push_back(node);
  }

  std::uint32_t lut3(unsigned table, std::uint32_t a, std::uint32_t b, const std::string& c) {
    const std::uint32_t reg = fresh();
    line("lop3.b32 " + name(reg) + ", " + name(a) + ", " + name(b) + ", " + c + ", " + std::to_string(table));
    count_gates(1);
    return reg;
  }

  void count_gates(std::size_t count) {
    gates_ += count;
    gates_per_turn_ += std::ldexp(static_cast<double>(count), -static_cast<int>(level_));
  }

  std::uint32_t add_key(NodeId node) {
    const NodeId base = circuit_.nodes()[node].a;
    const std::uint32_t plain = value(base);
    const std::string mask = mask_of(node);
    const std::uint32_t reg = fresh();
    if (mask[0] != '%' || !policy_.multiply) {
      line("xor.b32 " + name(reg) + ", " + name(plain) + ", " + mask);
      return reg;
    }
    if (doubled_[base] == no_register) {
      doubled_[base] = fresh();
      doubled_present_.push_back(base);
      line("mad.lo.u32 " + name(doubled_[base]) + ", " + name(plain) + ", %two, %one");
    }
    line("mad.lo.u32 " + name(reg) + ", " + name(doubled_[base]) + ", " + mask + ", " + name(plain));
    return reg;
  }

  // The mask of a keyed node's key bit, as an operand.
  std::string mask_of(NodeId node) {
    const std::string& mask = masks_[circuit_.nodes()[node].table];
    return mask[0] == '[' ? name(load_shared(mask)) : mask;
  }

  // Registers are not kept from one loop to the next; slots are.
  void forget() {
    for (const NodeId node : present_) registers_[node] = no_register;
    present_.clear();
    for (const NodeId node : doubled_present_) doubled_[node] = no_register;
    doubled_present_.clear();
  }

  // --- the kernel ---

  void begin() {
    line("mov.u32 %thread, %tid.x");
    line("mov.u32 %granule, %ctaid.x");
    line("mov.u32 %slots, kept");
    line("mad.lo.u32 %slots, %thread, 4, %slots");
    load_parameter("%two", offsetof(DesParameters, two));
    // Through memory, so that it stays in a register: a multiply-add takes one operand from elsewhere, which is %two.
    load_parameter("%one", offsetof(DesParameters, one));
    store_shared("[%slots]", "%one");
    line("ld.volatile.shared.u32 %one, [%slots]");
    load_parameter("%zero", offsetof(DesParameters, zero));
    for (std::size_t i = 0; i < des_inputs; ++i) {
      inputs_[i] = fresh();
      load_parameter(name(inputs_[i]), offsetof(DesParameters, inputs) + 4 * i);
    }
    for (const std::size_t position : key_positions()) {
      masks_[position] = name(fresh());
      load_parameter(masks_[position], offsetof(DesParameters, planes) + 4 * position);
    }
    for (std::size_t i = 0; i < lane_bits; ++i) mask_at(layout_.lanes[i]) = lane_masks[i];
    if (policy_.granules > 1) {
      line("shr.u32 %group, %thread, " + std::to_string(layout_.threads.size()));
      line("and.b32 %thread, %thread, " + std::to_string((1u << layout_.threads.size()) - 1));
      line("mad.lo.u32 %granule, %granule, " + std::to_string(policy_.granules) + ", %group");
    }
    spread(layout_.threads, "%thread");
    load_parameter("%first", offsetof(DesParameters, granule));
    line("add.u32 %first, %first, %granule");
    spread(layout_.blocks, "%first");
    if (policy_.granules > 1) store_block_masks();
    store_known_keys();
    for (std::size_t i = 0; i < layout_.loops.size(); ++i) {
      mask_at(layout_.loops[i]) = loop(i);
      line("mov.u32 " + loop(i) + ", %zero");
    }
    line("mov.u32 %note, notes");
    line("mov.u32 %turn, 0");
  }

  // The positions of the bits of all keys that the circuit has.
  std::vector<std::size_t> key_positions() const {
    std::array<bool, most_des_keys> used{};
    for (const DesPass& pass : circuit_.passes()) used[pass.key] = true;
    std::vector<std::size_t> positions;
    for (std::size_t position = 0; position < most_key_bits; ++position) {
      if (used[position / des_key_bits]) positions.push_back(position);
    }
    return positions;
  }

  std::string& mask_at(std::uint8_t bit) { return masks_[positions_[bit]]; }

  void spread(const std::vector<std::uint8_t>& bits, const char* source) {
    for (std::size_t i = 0; i < bits.size(); ++i) {
      mask_at(bits[i]) = name(fresh());
      line("bfe.s32 " + mask_at(bits[i]) + ", " + source + ", " + std::to_string(i) + ", 1");
    }
  }

  // The masks of block bits, equal in a granule but not in a block: too many for registers.
  void store_block_masks() {
    line("mov.u32 %group_masks, kept");
    line("mad.lo.u32 %group_masks, %group, " + std::to_string(4 * group_words()) + ", %group_masks");
    for (std::size_t i = 0; i < layout_.blocks.size(); ++i) {
      const std::string address = ptx::address("%group_masks", 4 * slot_words() * threads() + 4 * i);
      store_shared(address, mask_at(layout_.blocks[i]));
      mask_at(layout_.blocks[i]) = address;
    }
    line("bar.sync 0");
  }
  std::size_t block_mask_words() const { return policy_.granules > 1 ? group_words() * policy_.granules : 0; }

  // The masks of known passes, the same for a launch. They follow those of block bits.
  KnownPass known_pass(std::size_t number) const {
    KnownPass pass;
    pass.pass = circuit_.whole_passes()[number].pass;
    pass.prefix = "known" + std::to_string(number);
    pass.shared = "%" + pass.prefix + "_words";
    const std::size_t first = des_key_bits * pass.pass.key;
    for (std::size_t i = 0; i < des_key_bits; ++i) pass.planes[i] = masks_[first + i];
    return pass;
  }
  void store_known_keys() {
    const std::size_t count = circuit_.whole_passes().size();
    for (std::size_t number = 0; number < count; ++number) {
      const KnownPass pass = known_pass(number);
      const std::size_t words = slot_words() * threads() + block_mask_words() + known_pass_words * number;
      line(".reg .u32 " + pass.shared);
      line("mov.u32 " + pass.shared + ", kept");
      line("add.u32 " + pass.shared + ", " + pass.shared + ", " + std::to_string(4 * words));
      body_ += write_known_pass_masks(pass);
    }
    if (count > 0) line("bar.sync 0");
  }
  // Shared words of a thread: slots; later, in the same place, a key for each bit of a word.
  std::size_t slot_words() const { return std::max<std::size_t>(placement_.slot_count(), DesCheck::key_words); }
  std::size_t group_words() const { return (layout_.blocks.size() + 31) / 32 * 32; }

  void begin_turn() {
    gates_ = 0;
    for (NodeId node = 0; node < registers_.size(); ++node) {
      const bool gate = circuit_.nodes()[node].kind == Node::Kind::gate;
      if (gate && placement_.level_of(node) == 0 && placement_.at_once(node)) ++gates_of_turn_;
    }
    for (const WholePass& whole : circuit_.whole_passes()) {
      KeyBits keys;
      for (const NodeId from : whole.from) keys = keys | circuit_.nodes()[from].keys;
      if (levels_.of(keys) == 0) gates_of_turn_ += known_pass_gates();
    }
  }

  // Barriers in the middle of each part of the turn (see the header): between turns the work of warps differs.
  void keep_in_step() {
    if (barriers_ >= policy_.barriers || 2 * gates_ * policy_.barriers < gates_of_turn_ * (2 * barriers_ + 1)) return;
    line("bar.sync 0");
    ++barriers_;
  }

  // Notes the word of keys if one of them may be right.
  void compare() {
    std::uint32_t differences = no_register;
    for (const Comparison& comparison : compared_) {
      const std::uint32_t a = value(comparison.forward);
      const std::uint32_t b = value(comparison.backward);
      const bool first = differences == no_register;
      differences = first ? lut3(xor_table, a, b, name(a)) : lut3(ptx::gather_table, differences, a, name(b));
    }
    line("setp.ne.u32 %left, " + name(differences) + ", 0xffffffff");
    line("@%left st.local.v2.u32 [%note], {" + name(differences) + ", %turn}");
    line("@%left add.u32 %note, %note, 8");
    line("add.u32 %turn, %turn, 1");
  }

  // The bit of each loop changes from zeros to ones for its second turn, and back.
  void end() {
    for (std::size_t i = 0; i < layout_.loops.size(); ++i) {
      line("not.b32 " + loop(i) + ", " + loop(i));
      line("setp.ne.u32 %again, " + loop(i) + ", 0");
      line("@%again bra " + loop_label(i));
    }
    DesCheck check;
    check.passes.assign(circuit_.passes().begin(), circuit_.passes().end());
    check.known = circuit_.known();
    check.threads = threads();
    for (const auto* bits : {&layout_.lanes, &layout_.loops}) {
      for (const std::uint8_t bit : *bits) check.varying.push_back(positions_[bit]);
    }
    for (std::size_t i = 0; i < des_inputs; ++i) check.inputs[i] = name(inputs_[i]);
    check.masks = masks_;
    body_ += write_des_check(check);
    line("ret");
  }

  DesKernel finish() {
    const std::size_t words =
        slot_words() * threads() + block_mask_words() + known_pass_words * circuit_.whole_passes().size();
    std::string text = ptx::kernel_begin(DesKernel::name, sizeof(DesParameters), threads(), 16);
    text += ".local .align 8 .b8 notes[" + std::to_string(8 * ((std::size_t{1} << layout_.loops.size()) + 1)) + "];\n";
    text += ".reg .pred %left, %again;\n";
    text += ".reg .u32 %thread, %granule, %first, %group, %group_masks, %slots, %one, %two, %zero, %note, %turn;\n";
    text += ".reg .u32 %loop<" + std::to_string(layout_.loops.size()) + ">;\n";
    text += ".reg .u32 %r<" + std::to_string(register_count_) + ">;\n";
    text += body_ + "}\n";
    return {std::move(text), 4 * words, threads(), policy_.granules, gates_per_turn_};
  }

  const DesCircuit& circuit_;
  const std::span<const Comparison> compared_;
  const std::span<const std::uint8_t> positions_;
  const DesLayout& layout_;
  const DesPolicy policy_;
  const Levels levels_;
  const DesPlacement placement_;

  std::string body_;
  std::uint32_t register_count_ = 0;
  std::size_t level_ = 0;
  std::size_t gates_ = 0, gates_of_turn_ = 0, barriers_ = 0;
  double gates_per_turn_ = 0;
  std::vector<std::uint32_t> registers_, doubled_;  // by node
  std::vector<NodeId> present_, doubled_present_;   // those that have one
  std::array<std::string, most_key_bits> masks_;    // by position: a register, a constant or an address
  std::array<std::uint32_t, des_inputs> inputs_{};
};

}  // namespace

DesKernel write_des_kernel(const DesCircuit& circuit, std::span<const Comparison> compared,
                           std::span<const std::uint8_t> positions, const DesLayout& layout, const DesPolicy& policy) {
  return Writer(circuit, compared, positions, layout, policy).write();
}

}  // namespace warpcipher::search::cuda
