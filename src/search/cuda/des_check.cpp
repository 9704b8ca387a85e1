// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/des_ptx.hpp"

#include "cipher/des_bitslice.hpp"
#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {
namespace {

constexpr std::size_t half_key = 28;

// Pairs of rounds before which the halves of the key rotate by one bit, not by two: 1 and 9, 2 and 16.
constexpr unsigned single_turns[] = {0x11, 0x81};

class CheckWriter {
 public:
  explicit CheckWriter(const DesCheck& check) : check_(check), round_(DesCircuit::one_round()) {}

  std::string write() {
    declare();
    line("st.local.v2.u32 [%note], {0xffffffff, 0}");  // the end of the notes
    line("mov.u32 %note, notes");
    line("mov.u32 %word, 0");
    if (check_.passes.size() == 1) store_fixed_bits(check_.passes.front().key);  // no other key takes their place
    label("$check");
    leave_when_done();
    collect();
    set_inputs();
    for (pass_ = 0; pass_ < check_.passes.size(); ++pass_) {
      if (check_.passes.size() > 1) store_fixed_bits(check_.passes[pass_].key);
      store_varying_bits(check_.passes[pass_].key);
      run_pass();
    }
    --pass_;
    compare();
    report();
    line("bra $check");
    label("$checked");
    return text_;
  }

 private:
  void line(const std::string& text) { text_ += text + ";\n"; }
  void label(const std::string& text) { text_ += text + ":\n"; }
  static std::string varying(std::size_t i) { return "%vary" + std::to_string(i); }
  // The halves of the present pass: they are exchanged from one pass to the next.
  std::string half(bool right, std::size_t i) const {
    return (right != (pass_ % 2 != 0) ? "%right" : "%left") + std::to_string(i);
  }

  void declare() {
    line(".reg .pred %any, %load, %some, %on");
    line(".reg .u32 %word, %its_turn, %next, %lane, %id, %bit, %count, %valid, %different");
    line(".reg .u32 %key, %pair, %step, %hit_lanes, %hit_turn, %place, %capacity");
    line(".reg .u64 %hits, %entry");
    line(".reg .u32 %vary<" + std::to_string(check_.varying.size()) + ">");
    line(".reg .u32 %left<32>");
    line(".reg .u32 %right<32>");
    line(".reg .u32 %gate<" + std::to_string(2 * round_.nodes().size()) + ">");
    line(".reg .u32 %loaded<" + std::to_string(most_key_bits) + ">");
  }

  int which(std::size_t position) const {
    for (std::size_t i = 0; i < check_.varying.size(); ++i) {
      if (check_.varying[i] == position) return static_cast<int>(i);
    }
    return -1;
  }

  std::string operand(const std::string& mask) {
    if (mask[0] != '[') return mask;
    const std::string reg = "%loaded" + std::to_string(loaded_++);
    line("ld.shared.u32 " + reg + ", " + mask);
    return reg;
  }

  std::string key_word(const char* base, std::size_t word) const {
    std::string text = "[";
    text.append(base).append("+").append(std::to_string(4 * word * check_.threads)).append("]");
    return text;
  }

  void store_key(std::size_t position, const std::string& value) {
    const std::size_t bit = position % des_key_bits;
    const std::size_t first = bit < half_key ? bit : bit + half_key;
    for (const std::size_t word : {first, first + half_key})
      line("st.shared.u32 " + key_word("%spills", word) + ", " + value);
  }

  // The key bits that are the same in all keys that a thread has noted.
  void store_fixed_bits(std::size_t key) {
    for (std::size_t position = des_key_bits * key; position < des_key_bits * (key + 1); ++position) {
      if (which(position) < 0) store_key(position, operand(check_.masks[position]));
    }
  }

  void store_varying_bits(std::size_t key) {
    for (std::size_t i = 0; i < check_.varying.size(); ++i) {
      if (check_.varying[i] / des_key_bits == key) store_key(check_.varying[i], varying(i));
    }
  }

  // The warp continues while one of its threads has a key left.
  void leave_when_done() {
    line("ld.local.u32 %next, [%note]");
    line("not.b32 %next, %next");
    line("or.b32 %next, %next, %word");
    line("setp.ne.u32 %some, %next, 0");
    line("vote.sync.any.pred %any, %some, 0xffffffff");
    line("@!%any bra.uni $checked");
  }

  // Takes up to 32 keys from the notes, the first in the highest bit; %valid has a one for each.
  void collect() {
    for (std::size_t i = 0; i < check_.varying.size(); ++i) line("mov.u32 " + varying(i) + ", 0");
    line("mov.u32 %valid, 0");
    line("mov.u32 %count, 0");
    label("$collect");
    line("setp.eq.u32 %load, %word, 0");
    line("@%load ld.local.v2.u32 {%word, %its_turn}, [%note]");
    line("@%load not.b32 %word, %word");
    line("setp.ne.u32 %some, %word, 0");
    line("and.pred %load, %load, %some");  // at the end of the notes, stay there
    line("@%load add.u32 %note, %note, 8");
    line("bfind.u32 %lane, %word");
    line("shl.b32 %bit, 1, %lane");  // 0 if there is none
    line("xor.b32 %word, %word, %bit");
    line("shl.b32 %id, %its_turn, 5");
    line("or.b32 %id, %id, %lane");
    for (std::size_t i = 0; i < check_.varying.size(); ++i) {
      line("bfe.u32 %bit, %id, " + std::to_string(i) + ", 1");
      line("mad.lo.u32 " + varying(i) + ", " + varying(i) + ", 2, %bit");
    }
    line("selp.u32 %bit, 1, 0, %some");
    line("mad.lo.u32 %valid, %valid, 2, %bit");
    line("add.u32 %count, %count, 1");
    line("setp.ne.u32 %on, %count, 32");
    line("@%on bra $collect");
  }

  void set_inputs() {
    pass_ = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      line("mov.u32 " + half(false, i) + ", " + check_.inputs[i]);
      line("mov.u32 " + half(true, i) + ", " + check_.inputs[32 + i]);
    }
  }

  bool decrypts() const { return check_.passes[pass_].backwards; }

  // Sixteen rounds, two in each turn of the loop. Afterwards the right half is R16 and the left half L16.
  void run_pass() {
    // Backwards from the last round, whose halves are rotated by 28; the first step rotates by 0.
    const std::size_t start = decrypts() ? half_key + 1 : 0;
    line("add.u32 %key, %spills, " + std::to_string(4 * start * check_.threads));
    line("mov.u32 %pair, 0");
    const std::string pair = "$pair" + std::to_string(pass_);
    label(pair);
    add_round(false);
    add_round(true);
    line("add.u32 %pair, %pair, 1");
    line("setp.ne.u32 %on, %pair, 8");
    line("@%on bra " + pair);
  }

  // f takes the right half, and in every second round the left half.
  void add_round(bool second) {
    const std::uint32_t stride = 4 * check_.threads;
    line("shr.u32 %step, " + std::to_string(single_turns[second ? 1 : 0]) + ", %pair");
    line("and.b32 %step, %step, 1");
    line("sub.u32 %step, 2, %step");
    line("mad.lo.u32 %key, %step, " + std::to_string(decrypts() ? 0u - stride : stride) + ", %key");
    const auto nodes = round_.nodes();
    std::vector<std::string> names(nodes.size());
    for (NodeId node = 0; node < nodes.size(); ++node) {
      names[node] = "%gate" + std::to_string(node + (second ? nodes.size() : 0));
      if (nodes[node].kind == Node::Kind::input) {
        names[node] = half((nodes[node].table >= 32) != second, nodes[node].table % 32u);
      }
    }
    for (const Comparison& result : round_.comparisons()) names[result.forward] = names[result.backward];
    for (NodeId node = 0; node < nodes.size(); ++node) {
      const Node& source = nodes[node];
      if (source.kind == Node::Kind::keyed) {
        // In round 16 the bits are not rotated.
        constexpr std::size_t last = 15;
        const std::size_t position = des::bitslice::subkey_positions[des::bitslice::subkey_bits * last + source.table];
        line("ld.shared.u32 %bit, " + key_word("%key", position < half_key ? position : position + half_key));
        line("xor.b32 " + names[node] + ", " + names[source.a] + ", %bit");
      } else if (source.kind == Node::Kind::gate) {
        line("lop3.b32 " + names[node] + ", " + names[source.a] + ", " + names[source.b] + ", " + names[source.c] +
             ", " + std::to_string(source.table));
      }
    }
  }

  // %different: a zero for each key that passes.
  void compare() {
    line("not.b32 %different, %valid");
    for (std::size_t i = 0; i < 64; ++i) {
      if ((check_.known >> i & 1u) == 0) continue;
      line("lop3.b32 %different, %different, " + half(i < 32, i % 32) + ", " + check_.inputs[64 + i] + ", " +
           std::to_string(ptx::gather_table));
    }
  }

  // A hit for each key.
  void report() {
    label("$report");
    line("setp.ne.u32 %some, %different, 0xffffffff");
    line("vote.sync.any.pred %any, %some, 0xffffffff");
    line("@!%any bra.uni $check");
    line("not.b32 %place, %different");
    line("bfind.u32 %place, %place");
    line("shl.b32 %bit, 1, %place");
    line("or.b32 %different, %different, %bit");
    line("mov.u32 %id, 0");
    for (std::size_t i = 0; i < check_.varying.size(); ++i) {
      line("shr.u32 %bit, " + varying(i) + ", %place");
      line("and.b32 %bit, %bit, 1");
      line("mad.lo.u32 %id, %bit, " + std::to_string(1u << i) + ", %id");
    }
    line("shr.u32 %hit_turn, %id, 5");
    line("and.b32 %lane, %id, 31");
    line("shl.b32 %hit_lanes, 1, %lane");
    line("ld.param.u32 %capacity, [parameters+" + std::to_string(offsetof(DesParameters, capacity)) + "]");
    line("ld.param.u64 %hits, [parameters+" + std::to_string(offsetof(DesParameters, hits)) + "]");
    line("@%some atom.global.add.u32 %place, [%hits], 1");
    line("setp.lt.u32 %on, %place, %capacity");
    line("and.pred %some, %some, %on");
    line("mul.wide.u32 %entry, %place, " + std::to_string(sizeof(DesHit)));
    line("add.u64 %entry, %entry, %hits");
    line("@%some st.global.v4.u32 [%entry+16], {%granule, %thread, %hit_turn, %hit_lanes}");
    line("bra $report");
  }

  const DesCheck& check_;
  const DesCircuit round_;
  std::string text_;
  std::size_t loaded_ = 0;
  std::size_t pass_ = 0;  // that is being written
};

}  // namespace

std::string write_des_check(const DesCheck& check) { return CheckWriter(check).write(); }

}  // namespace warpcipher::search::cuda
