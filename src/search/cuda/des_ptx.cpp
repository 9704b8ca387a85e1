// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_ptx.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "search/cuda/des_masks.hpp"
#include "search/cuda/des_ptx_keys.hpp"

namespace warpcipher::search::cuda {
namespace {

constexpr std::uint32_t no_register = ~std::uint32_t{0};

class KernelWriter {
 public:
  KernelWriter(const DesCircuit& circuit, std::span<const Comparison> compared, std::span<const std::uint8_t> positions,
               const DesLayout& layout, const DesPolicy& policy)
      : circuit_(circuit),
        compared_(compared),
        positions_(positions),
        layout_(layout),
        policy_(policy),
        levels_(positions, layout.loops),
        placement_(circuit, compared, levels_, policy),
        masks_(circuit, placement_, compared, DesKeys::varying(positions, layout)),
        keys_(circuit, positions, layout, policy.granules, placement_.spill_count()),
        registers_(circuit.nodes().size(), no_register) {}

  DesKernel write() {
    begin();
    const std::string start = text_.take();
    for (level_ = levels_.count(); level_-- > 0;) {
      if (level_ + 1 < levels_.count()) text_.label(loop_label(level_));
      if (level_ == 0) begin_turn();
      for (NodeId node = 0; node < registers_.size(); ++node) {
        if (placement_.level_of(node) == level_ && placement_.at_once(node)) value(node);
        if (level_ == 0) keep_in_step();
      }
      if (level_ == 0) break;
      forget();
    }
    compare();
    end();
    const std::string loops = text_.take();
    keys_.write_table(text_);
    const std::string table = text_.take();
    keys_.write_end(text_);
    text_.line("ret");
    return finish(start + table + loops + text_.take());
  }

 private:
  static std::string name(std::uint32_t reg) { return DesText::name(reg); }
  static std::string loop_label(std::size_t level) { return "$loop" + std::to_string(level); }
  std::string spill_address(NodeId node) const {
    return ptx::address("%spills", 4 * std::size_t{placement_.spill(node)} * keys_.threads());
  }

  // --- values ---

  // The register that holds a node at the present level, with its mask of masks_; writes the
  // instructions that compute it, if needed.
  std::uint32_t value(NodeId node) {
    if (registers_[node] != no_register) return registers_[node];
    const Node& source = circuit_.nodes()[node];
    if (source.kind == Node::Kind::input) return inputs_[source.table];
    const bool outer = placement_.level_of(node) > level_;
    const bool kept = placement_.spill(node) != no_spill;
    if (source.kind == Node::Kind::whole && !(kept && outer)) {
      if (outer) throw Error(Status::engine_failure, "the DES search kernel does not keep a bit of a known pass");
      run_known_pass(source.a);
      return registers_[node];
    }
    std::uint32_t reg = no_register;
    if (kept && outer) {
      reg = text_.load_shared(spill_address(node));
    } else if (source.kind == Node::Kind::keyed) {
      reg = add_key(source);
    } else if (masks_.is_masked(node)) {
      reg = add_halves(node);
    } else {
      const std::uint32_t a = value(source.a);
      const std::uint32_t b = value(source.b);
      const std::uint32_t c = value(source.c);
      reg = lut3(source.table, a, b, name(c));
    }
    if (kept && !outer) text_.store_shared(spill_address(node), name(reg));
    remember(node, reg);
    return reg;
  }

  // The node with a mask added, or as it is.
  std::uint32_t with_mask(NodeId node, const KeyBits& mask) { return add_mask(value(node), masks_.of(node) ^ mask); }
  std::uint32_t plain(NodeId node) { return with_mask(node, KeyBits()); }

  std::uint32_t add_mask(std::uint32_t reg, const KeyBits& mask) {
    if (mask.empty()) return reg;
    if (policy_.multiply) {
      std::string loads;
      const std::vector<std::string> factors = keys_.table().factors(mask, keys_.bits(), loads);
      text_.append(loads);
      if (!factors.empty()) {
        const std::uint32_t sum = text_.fresh();
        text_.line("mad.lo.u32 " + name(sum) + ", " + name(reg) + ", " + factors[1] + ", " + factors[0]);
        return sum;
      }
    }
    return add(reg, operands(mask));
  }

  // left ^ (an S-box's output), with the masks of both.
  std::uint32_t add_halves(NodeId node) {
    const Node& source = circuit_.nodes()[node];
    const std::uint32_t left = value(source.a);
    const std::uint32_t right = value(source.b);
    std::vector<std::string> rest = operands(masks_.of(source.a) ^ masks_.of(node));
    if (rest.empty()) return lut3(source.table, left, right, name(left));
    const std::uint32_t sum = lut3(ptx::xor3_table, left, right, rest.back());
    rest.pop_back();
    return add(sum, rest);
  }

  std::vector<std::string> operands(const KeyBits& mask) {
    std::string loads;
    std::vector<std::string> found = keys_.table().operands(mask, keys_.bits(), loads);
    text_.append(loads);
    return found;
  }

  std::uint32_t add(std::uint32_t sum, const std::vector<std::string>& terms) {
    for (std::size_t i = 0; i < terms.size(); i += 2) {
      const std::uint32_t next = text_.fresh();
      const std::string first = name(next) + ", " + name(sum) + ", " + terms[i];
      text_.line(i + 1 < terms.size()
                     ? "lop3.b32 " + first + ", " + terms[i + 1] + ", " + std::to_string(ptx::xor3_table)
                     : "xor.b32 " + first);
      count_gates(1);
      sum = next;
    }
    return sum;
  }

  // In outer loops masks are not worth a place in the table.
  std::uint32_t add_key(const Node& keyed) {
    if (level_ == 0) return with_mask(keyed.a, KeyBits(keyed.table));
    const std::uint32_t base = value(keyed.a);
    const std::string& bit = keys_.bits()[keyed.table];
    return add(base, {bit[0] == '[' ? name(text_.load_shared(bit)) : bit});
  }

  // Gives each output bit of a known pass a register.
  void run_known_pass(std::size_t number) {
    KnownPass pass = keys_.known_pass(number);
    const WholePass& whole = circuit_.whole_passes()[number];
    for (std::size_t i = 0; i < whole.from.size(); ++i) {
      pass.from[i] = name(with_mask(whole.from[i], known_pass_input_mask(whole.pass, i)));
    }
    std::array<std::uint32_t, 64> results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i] = text_.fresh();
      pass.to[i] = name(results[i]);
    }
    text_.append(write_known_pass(pass));
    count_gates(known_pass_gates());
    for (NodeId node = 0; node < registers_.size(); ++node) {
      const Node& bit = circuit_.nodes()[node];
      if (bit.kind != Node::Kind::whole || bit.a != number) continue;
      const KeyBits mask = masks_.of(node) ^ known_pass_output_mask(whole.pass, bit.table);
      const std::uint32_t reg = add_mask(results[bit.table], mask);
      if (placement_.spill(node) != no_spill) text_.store_shared(spill_address(node), name(reg));
      remember(node, reg);
    }
  }

  void remember(NodeId node, std::uint32_t reg) {
    registers_[node] = reg;
    present_.push_back(node);
  }

  std::uint32_t lut3(unsigned table, std::uint32_t a, std::uint32_t b, const std::string& c) {
    count_gates(1);
    return text_.lut3(table, a, b, c);
  }

  void count_gates(std::size_t count) {
    gates_ += count;
    gates_per_turn_ += std::ldexp(static_cast<double>(count), -static_cast<int>(level_));
  }

  // Registers are not kept from one loop to the next; spills are.
  void forget() {
    for (const NodeId node : present_) registers_[node] = no_register;
    present_.clear();
  }

  // --- the kernel ---

  void begin() {
    for (std::size_t i = 0; i < des_inputs; ++i) {
      inputs_[i] = text_.fresh();
      text_.load_parameter(name(inputs_[i]), offsetof(DesParameters, inputs) + 4 * i);
    }
    keys_.write_start(text_);
    text_.line("mov.u32 %note, notes");
    text_.line("mov.u32 %turn, 0");
  }

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
    const std::size_t barriers = policy_.barriers * circuit_.passes().size();
    if (barriers_ >= barriers || 2 * gates_ * barriers < gates_of_turn_ * (2 * barriers_ + 1)) return;
    text_.line("bar.sync 0");
    ++barriers_;
  }

  // Notes the word of keys if one of them may be right.
  void compare() {
    std::uint32_t differences = no_register;
    for (const Comparison& comparison : compared_) {
      const std::uint32_t a = plain(comparison.forward);
      const std::uint32_t b = plain(comparison.backward);
      const bool first = differences == no_register;
      differences = first ? lut3(xor_table, a, b, name(a)) : lut3(ptx::gather_table, differences, a, name(b));
    }
    text_.line("setp.ne.u32 %left, " + name(differences) + ", 0xffffffff");
    text_.line("@%left st.local.v2.u32 [%note], {" + name(differences) + ", %turn}");
    text_.line("@%left add.u32 %note, %note, 8");
    text_.line("add.u32 %turn, %turn, 1");
  }

  // The bit of each loop changes from zeros to ones for its second turn, and back.
  void end() {
    for (std::size_t i = 0; i < layout_.loops.size(); ++i) {
      const std::string loop = DesKeys::loop(i);
      text_.line("not.b32 " + loop + ", " + loop);
      text_.append(keys_.table().flip(positions_[layout_.loops[i]]));
      text_.line("setp.ne.u32 %again, " + loop + ", 0");
      text_.line("@%again bra " + loop_label(i));
    }
    DesCheck check;
    check.passes.assign(circuit_.passes().begin(), circuit_.passes().end());
    check.known = circuit_.known();
    check.threads = keys_.threads();
    for (const auto* bits : {&layout_.lanes, &layout_.loops}) {
      for (const std::uint8_t bit : *bits) check.varying.push_back(positions_[bit]);
    }
    for (std::size_t i = 0; i < des_inputs; ++i) check.inputs[i] = name(inputs_[i]);
    check.masks = keys_.bits();
    text_.line("bar.sync 0");
    text_.append(write_des_check(check));
  }

  DesKernel finish(const std::string& body) const {
    std::string text = ptx::kernel_begin(DesKernel::name, sizeof(DesParameters), keys_.threads(), 16);
    text += ".local .align 8 .b8 notes[" + std::to_string(8 * ((std::size_t{1} << layout_.loops.size()) + 1)) + "];\n";
    text += ".reg .pred %left, %again;\n";
    text += ".reg .u32 %thread, %granule, %first, %group, %group_masks, %spills, %zero, %note, %turn;\n";
    text += ".reg .u32 %loop<" + std::to_string(layout_.loops.size()) + ">;\n";
    text += ".reg .u32 %r<" + std::to_string(text_.register_count()) + ">;\n";
    text += body + "}\n";
    return {std::move(text), 4 * keys_.shared_words(), keys_.threads(), policy_.granules, gates_per_turn_};
  }

  const DesCircuit& circuit_;
  const std::span<const Comparison> compared_;
  const std::span<const std::uint8_t> positions_;
  const DesLayout& layout_;
  const DesPolicy policy_;
  const Levels levels_;
  const DesPlacement placement_;
  const DesMasks masks_;

  DesText text_;
  DesKeys keys_;
  std::size_t level_ = 0;
  std::size_t gates_ = 0, gates_of_turn_ = 0, barriers_ = 0;
  double gates_per_turn_ = 0;
  std::vector<std::uint32_t> registers_;  // by node
  std::vector<NodeId> present_;           // those that have one
  std::array<std::uint32_t, des_inputs> inputs_{};
};

}  // namespace

DesKernel write_des_kernel(const DesCircuit& circuit, std::span<const Comparison> compared,
                           std::span<const std::uint8_t> positions, const DesLayout& layout, const DesPolicy& policy) {
  return KernelWriter(circuit, compared, positions, layout, policy).write();
}

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
