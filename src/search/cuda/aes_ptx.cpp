// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/aes_ptx.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "search/cuda/ptx_text.hpp"

namespace warpcipher::search::cuda {

// The words of the key schedule in an AES search kernel. Each sum is computed in the innermost loop that changes it,
// from sums that exist already.

// The text of an AES search kernel: one body for each loop, and the instructions for sums and lookups.
class AesText {
 public:
  using Register = std::string;

  static constexpr std::size_t copies_len = 128;  // bytes of the copies of an entry, one for each lane
  static constexpr std::size_t table_len = 256 * copies_len;

  // levels: of loops. tables: 4, or 2, where T2 and T3 are T0 and T1 rotated.
  AesText(std::size_t levels, std::size_t tables) : bodies_(levels + 1), tables_(tables) {}

  // The level of instructions outside all loops.
  std::size_t top() const { return bodies_.size() - 1; }
  const std::string& body(std::size_t level) const { return bodies_[level]; }
  std::size_t register_count() const { return register_count_; }

  static std::string number(std::size_t value) { return std::to_string(value); }
  Register fresh() { return "%r" + number(register_count_++); }
  void line(std::size_t level, const std::string& text) { bodies_[level] += text + ";\n"; }
  void label(std::size_t level, const std::string& name) { bodies_[level] += name + ":\n"; }

  // The sum of registers or constants, at least one.
  Register add(std::size_t level, const std::vector<std::string>& operands) {
    Register sum = operands.front();
    for (std::size_t i = 1; i < operands.size();) {
      const Register next = fresh();
      if (i + 1 < operands.size()) {
        line(level, "lop3.b32 " + next + ", " + sum + ", " + operands[i] + ", " + operands[i + 1] + ", " +
                        number(ptx::xor3_table));
        i += 2;
      } else {
        line(level, "xor.b32 " + next + ", " + sum + ", " + operands[i]);
        i += 1;
      }
      sum = next;
    }
    return sum;
  }

  // sum ^ (byte `byte` of word); an empty sum is 0.
  Register add_byte(std::size_t level, const Register& sum, const Register& word, std::size_t byte) {
    const Register next = fresh();
    const std::string mask = number(std::size_t{0xff} << 8 * byte);
    if (sum.empty()) {
      line(level, "and.b32 " + next + ", " + word + ", " + mask);
    } else {
      line(level, "lop3.b32 " + next + ", " + word + ", " + mask + ", " + sum + ", " + number(ptx::add_masked_table));
    }
    return next;
  }

  // The entry of T_table for a byte of a word. With two tables, the caller rotates an entry of T2 and T3 by 16.
  Register look_up(std::size_t level, const Register& word, std::size_t byte, std::size_t table) {
    const Register place = fresh();
    const Register entry = fresh();
    line(level, "dp4a.u32.u32 " + place + ", " + word + ", " + number(std::size_t{128} << 8 * byte) + ", %lane");
    line(level, "ld.shared.u32 " + entry + ", " + ptx::address(place, table % tables_ * table_len));
    return entry;
  }

  Register rotate(std::size_t level, const Register& word) {
    const Register rotated = fresh();
    line(level, "prmt.b32 " + rotated + ", " + word + ", 0, " + number(0x1032));
    return rotated;
  }

  // An entry with the S-box value in byte `to`. T0 has it in bytes 1 and 2, T1 in bytes 2 and 3, and so on.
  Register look_up_sbox(std::size_t level, const Register& word, std::size_t byte, std::size_t to) {
    const std::size_t table = (to + 3) % 4 < tables_ ? (to + 3) % 4 : (to + 2) % 4;
    const Register entry = look_up(level, word, byte, table);
    return table < tables_ ? entry : rotate(level, entry);
  }

 private:
  std::vector<std::string> bodies_;  // by level; the last is outside all loops
  std::size_t tables_;
  std::size_t register_count_ = 0;
};

class AesScheduleWriter {
 public:
  using Register = AesText::Register;

  // Both must outlive the writer.
  AesScheduleWriter(const AesCircuit& circuit, AesText& text)
      : circuit_(circuit), text_(text), values_(circuit.levels() + 1) {}

  // The terms of a sum that change in no loop further in than `level`.
  Sum outside(const Sum& sum, std::size_t level) const;

  // The register of a sum. It is made from up to three other sums and from terms, with the fewest operations.
  Register write(const Sum& sum);

  // The register of its term: a key word, a loop's bits, or a word of the text.
  static Register plain_term(std::size_t term);

  // A register with the S-box value `term` in the byte where the sum needs it.
  Register sbox_entry(std::size_t term);

 private:
  struct Value {
    Sum sum;
    Register name;
  };

  std::optional<Register> find_value(const Sum& sum) const;
  std::vector<Sum> cheapest_parts(const Sum& sum, std::size_t level) const;

  const AesCircuit& circuit_;
  AesText& text_;
  std::vector<std::vector<Value>> values_;  // by level
  std::map<std::size_t, Register> entries_;
};

namespace {

constexpr std::size_t copies_len = AesText::copies_len;
constexpr std::size_t table_len = AesText::table_len;

class AesWriter {
 public:
  AesWriter(std::size_t key_words, std::span<const AesGroup> groups, std::size_t levels, std::span<const AesByte> bytes,
            const AesPolicy& policy)
      : circuit_(key_words, groups, levels),
        groups_(groups),
        bytes_(bytes),
        policy_(policy),
        text_(levels, policy.tables),
        schedule_(circuit_, text_) {}

  AesKernel write() {
    const std::size_t rounds = circuit_.rounds();
    begin();
    for (std::size_t round = 1; round + 1 < rounds; ++round) {
      for (std::size_t column = 0; column < 4; ++column) schedule_.write(circuit_.word(4 * round + column, 0));
      for (std::size_t column = 0; column < 4; ++column) {
        for (std::size_t byte = 0; byte < 4; ++byte) state(round, column, byte);
      }
    }
    compare();
    return finish();
  }

 private:
  using Register = AesText::Register;

  static std::string number(std::size_t value) { return AesText::number(value); }
  void line(std::size_t level, const std::string& text) { text_.line(level, text); }
  std::size_t top() const { return text_.top(); }
  void load_parameter(const std::string& to, std::size_t offset) {
    line(top(), "ld.param.u32 " + to + ", " + ptx::address("parameters", offset));
  }

  // --- the state ---

  // A column after a round, to read one byte of it: without the terms that change further in.
  Register state(std::size_t round, std::size_t column, std::size_t byte) {
    return state_outside(round, column, circuit_.state_level(round, column, byte));
  }

  std::size_t lookup_level(std::size_t round, std::size_t column, std::size_t row) const {
    return circuit_.state_level(round - 1, (column + row) % 4, row);
  }

  Register entry(std::size_t round, std::size_t column, std::size_t row) {
    const auto key = std::tuple(round, column, row);
    const auto found = state_entries_.find(key);
    if (found != state_entries_.end()) return found->second;
    const Register source = state(round - 1, (column + row) % 4, row);
    return state_entries_[key] = text_.look_up(lookup_level(round, column, row), source, row, row);
  }

  // The lookups of a column that change in loop `level`, as operands of a sum.
  std::vector<std::string> entries(std::size_t round, std::size_t column, std::size_t level) {
    std::vector<std::string> plain;
    std::vector<std::string> rotated;
    for (std::size_t row = 0; row < 4; ++row) {
      if (lookup_level(round, column, row) != level) continue;
      (row < policy_.tables ? plain : rotated).push_back(entry(round, column, row));
    }
    if (!rotated.empty()) plain.push_back(text_.rotate(level, text_.add(level, rotated)));
    return plain;
  }

  // The part of a sum that changes in no loop further in: of the lookups of a round and, unless `word` is empty, of the
  // word of the schedule.
  Register state_outside(std::size_t round, std::size_t column, std::size_t level) {
    if (round == 0) return schedule_.write(schedule_.outside(circuit_.first_state(column), level));
    const Sum word = schedule_.outside(circuit_.word(4 * round + column, 0), level);
    return sum_outside(round, column, level, word);
  }

  Register sum_outside(std::size_t round, std::size_t column, std::size_t level, const Sum& word) {
    const auto key = std::tuple(round, column, level, word.terms.any());
    const auto found = states_.find(key);
    if (found != states_.end()) return found->second;
    std::size_t outer_lookups = 0;
    std::size_t own_lookups = 0;
    for (std::size_t row = 0; row < 4; ++row) {
      outer_lookups += lookup_level(round, column, row) > level ? 1 : 0;
      own_lookups += lookup_level(round, column, row) == level ? 1 : 0;
    }
    const Sum outer_word = schedule_.outside(word, level + 1);
    const std::size_t own_terms = (word.terms ^ outer_word.terms).count();
    std::vector<std::string> parts = entries(round, column, level);
    if (outer_lookups == 0) {
      if (word.terms.any()) parts.push_back(schedule_.write(word));
    } else if (own_lookups + own_terms == 0) {
      return states_[key] = sum_outside(round, column, level + 1, word);
    } else if (own_terms <= 1 && word.terms.any()) {
      parts.push_back(sum_outside(round, column, level + 1, outer_word));
      for (std::size_t i = 0; i < word.terms.size(); ++i) {
        if (!word.terms[i] || outer_word.terms[i]) continue;
        if (i < sbox_terms) {
          parts.push_back(schedule_.plain_term(i));
        } else {
          parts.push_back(text_.add_byte(level, {}, schedule_.sbox_entry(i), circuit_.lookup(i).to));
        }
      }
    } else {
      parts.push_back(sum_outside(round, column, level + 1, Sum{}));
      if (word.terms.any()) parts.push_back(schedule_.write(word));
    }
    return states_[key] = text_.add(level, parts);
  }

  // --- the kernel ---

  void begin() {
    const std::size_t t = top();
    line(t, "mov.u32 %thread, %tid.x");
    line(t, "mov.u32 %unit, %ctaid.x");
    line(t, "mad.lo.u32 %unit, %unit, " + number(policy_.threads) + ", %thread");
    line(t, "and.b32 %lane, %thread, 31");
    line(t, "shr.u32 %row, %thread, 5");
    line(t, "mov.u32 %base, kept");
    line(t, "mad.lo.u32 %lane, %lane, 4, %base");
    line(t, "ld.param.u64 %entries, " + ptx::address("parameters", offsetof(AesParameters, entries)));
    text_.label(t, "$fill");  // each warp fills one row at a time
    line(t, "mul.wide.u32 %place64, %row, 4");
    line(t, "add.u64 %place64, %place64, %entries");
    line(t, "ld.global.u32 %entry0, [%place64+0]");
    line(t, "mad.lo.u32 %place, %row, " + number(copies_len) + ", %lane");
    for (std::size_t table = 0; table < policy_.tables; ++table) {
      if (table > 0) {
        line(t, "prmt.b32 %entry" + number(table) + ", %entry" + number(table - 1) + ", 0, " + number(0x2103));
      }
      line(t, "st.shared.u32 " + ptx::address("%place", table * table_len) + ", %entry" + number(table));
    }
    line(t, "add.u32 %row, %row, " + number(policy_.threads / 32));
    line(t, "setp.ge.u32 %any, %row, 256");
    line(t, "@!%any bra $fill");
    line(t, "bar.sync 0");

    // A thread past the last unit repeats unit 0 and reports nothing: votes need whole warps.
    load_parameter("%units", offsetof(AesParameters, units));
    line(t, "setp.ge.u32 %spare, %unit, %units");
    line(t, "mov.u32 %idle, 0");
    line(t, "@%spare mov.u32 %idle, 1");
    line(t, "@%spare mov.u32 %unit, 0");
    line(t, "ld.param.u64 %keys, " + ptx::address("parameters", offsetof(AesParameters, keys)));
    line(t, "mul.wide.u32 %place64, %unit, " + number(4 * circuit_.key_words()));
    line(t, "add.u64 %keys, %keys, %place64");
    for (std::size_t i = 0; i < circuit_.key_words(); ++i) {
      line(t, "ld.global.u32 %key" + number(i) + ", " + ptx::address("%keys", 4 * i));
    }
    for (std::size_t i = 0; i < 4; ++i) {
      load_parameter("%in" + number(i), offsetof(AesParameters, in) + 4 * i);
      load_parameter("%expected" + number(i), offsetof(AesParameters, expected) + 4 * i);
      load_parameter("%mask" + number(i), offsetof(AesParameters, mask) + 4 * i);
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      load_parameter("%bits" + number(i), offsetof(AesParameters, bits) + 4 * i);
      line(t, "mov.u32 %loop" + number(i) + ", 0");
    }
    line(t, "mov.u32 %turn, 0");
  }

  // A column before the last round determines one byte of each column of the ciphertext.
  void compare() {
    const std::size_t last = circuit_.rounds();
    Register differences;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const std::size_t row = bytes_[i].row;
      const std::size_t from = bytes_[i].column;
      const std::size_t to = bytes_[i].output_column();
      if (i == 1 || (i > 1 && bytes_[i - 1].column != from)) leave_if_none(differences);
      const Register lookups = sum_outside(last - 1, from, 0, Sum{});
      const Register state = text_.add(0, {lookups, schedule_.write(circuit_.word(4 * (last - 1) + from, row))});
      const Register entry = text_.look_up_sbox(0, state, row, row);
      const Register difference =
          text_.add(0, {entry, schedule_.write(circuit_.word(4 * last + to, row)), "%expected" + number(to)});
      const Register known = text_.fresh();
      line(0, "lop3.b32 " + known + ", " + difference + ", %mask" + number(to) + ", " +
                  number(std::size_t{0xff} << 8 * row) + ", " + number(ptx::and3_table));
      if (i == 0) {
        differences = known;
      } else {
        const Register next = text_.fresh();
        line(0, "or.b32 " + next + ", " + known + ", " + differences);
        differences = next;
      }
    }
    line(0, "or.b32 " + differences + ", " + differences + ", %idle");
    line(0, "setp.ne.u32 %none, " + differences + ", 0");
    line(0, "@%none bra $next");
    line(0, "ld.param.u32 %capacity, " + ptx::address("parameters", offsetof(AesParameters, capacity)));
    line(0, "ld.param.u64 %hits, " + ptx::address("parameters", offsetof(AesParameters, hits)));
    line(0, "atom.global.add.u32 %place, [%hits], 1");
    line(0, "setp.ge.u32 %none, %place, %capacity");
    line(0, "@%none bra $next");
    line(0, "mul.wide.u32 %place64, %place, " + number(sizeof(AesHit)));
    line(0, "add.u64 %place64, %place64, %hits");
    line(0, "st.global.v4.u32 [%place64+16], {%unit, %turn, 1, 0}");
    text_.label(0, "$next");
    line(0, "add.u32 %turn, %turn, 1");
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::string loop = "%loop" + number(i);
      line(0, "sub.u32 " + loop + ", " + loop + ", %bits" + number(i));
      line(0, "and.b32 " + loop + ", " + loop + ", %bits" + number(i));
      line(0, "setp.ne.u32 %again, " + loop + ", 0");
      line(0, "@%again bra $loop" + number(i));
    }
    line(0, "ret");
  }

  // Jumps to the next turn when no key of the warp is left.
  void leave_if_none(const Register& differences) {
    line(0, "setp.eq.u32 %left, " + differences + ", 0");
    line(0, "vote.sync.any.pred %any, %left, 0xffffffff");
    line(0, "@!%any bra.uni $next");
  }

  AesKernel finish() {
    std::string text = ptx::kernel_begin(AesKernel::name, sizeof(AesParameters), policy_.threads, 128);
    text += ".reg .pred %left, %any, %none, %again, %spare;\n";
    text += ".reg .u32 %thread, %unit, %units, %lane, %row, %base, %place, %idle, %turn, %capacity;\n";
    text += ".reg .u64 %entries, %keys, %hits, %place64;\n";
    text += ".reg .u32 %entry<4>, %key<8>, %in<4>, %expected<4>, %mask<4>;\n";
    text += ".reg .u32 %loop<" + number(most_aes_groups) + ">, %bits<" + number(most_aes_groups) + ">;\n";
    text += ".reg .u32 %r<" + number(text_.register_count()) + ">;\n";
    text += text_.body(top());
    for (std::size_t level = top(); level-- > 0;) {
      for (std::size_t i = groups_.size(); i-- > 0;) {
        if (groups_[i].level == level) text += "$loop" + number(i) + ":\n";
      }
      text += text_.body(level);
    }
    text += "}\n";
    return {std::move(text), policy_.tables * table_len};
  }

  const AesCircuit circuit_;
  const std::span<const AesGroup> groups_;
  const std::span<const AesByte> bytes_;
  const AesPolicy policy_;
  AesText text_;
  AesScheduleWriter schedule_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Register> state_entries_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, bool>, Register> states_;
};

}  // namespace

std::vector<AesByte> choose_aes_bytes(const std::array<std::uint8_t, 16>& mask) {
  constexpr int enough = 32;
  const auto known = [&](const AesByte& byte) { return std::popcount(mask[4 * byte.output_column() + byte.row]); };
  std::vector<std::vector<AesByte>> columns;
  for (std::uint8_t column = 0; column < 4; ++column) {
    std::vector<AesByte>& bytes = columns.emplace_back();
    for (const std::uint8_t row : std::array<std::uint8_t, 4>{1, 2, 3, 0}) bytes.push_back({column, row});
    std::erase_if(bytes, [&](const AesByte& byte) { return known(byte) == 0; });
    std::ranges::stable_sort(bytes, std::greater{}, known);
  }
  const auto sum = [&](const std::vector<AesByte>& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), 0, [&](int bits, const AesByte& b) { return bits + known(b); });
  };
  std::ranges::stable_sort(columns, std::greater{}, sum);
  std::vector<AesByte> chosen;
  for (const std::vector<AesByte>& bytes : columns) {
    if (sum(chosen) < enough) chosen.insert(chosen.end(), bytes.begin(), bytes.end());
  }
  return chosen;
}

AesKernel write_aes_kernel(std::size_t key_words, std::span<const AesGroup> groups, std::size_t levels,
                           std::span<const AesByte> bytes, const AesPolicy& policy) {
  return AesWriter(key_words, groups, levels, bytes, policy).write();
}

namespace {

// How many of the latest sums of a level are tried as parts of a new one.
constexpr std::size_t most_near = 12;

// Instructions that add this many registers and the terms of `rest`.
std::size_t operations(std::size_t registers, const Sum& rest) {
  std::size_t plain = registers + (rest.constant != 0 ? 1 : 0);
  std::size_t masked = 0;
  for (std::size_t i = 0; i < rest.terms.size(); ++i) {
    if (rest.terms[i]) ++(i < sbox_terms ? plain : masked);
  }
  return plain / 2 + masked;
}

}  // namespace

Sum AesScheduleWriter::outside(const Sum& sum, std::size_t level) const {
  Sum rest = sum;
  for (std::size_t i = 0; i < rest.terms.size(); ++i) {
    if (rest.terms[i] && circuit_.level(i) < level) rest.terms.reset(i);
  }
  return rest;
}

AesScheduleWriter::Register AesScheduleWriter::sbox_entry(std::size_t term) {
  const auto found = entries_.find(term);
  if (found != entries_.end()) return found->second;
  const AesCircuit::Lookup lookup = circuit_.lookup(term);
  const std::size_t level = circuit_.level(term);
  const Register word = write(outside(circuit_.word(lookup.word, lookup.from), level));
  return entries_[term] = text_.look_up_sbox(level, word, lookup.from, lookup.to);
}

AesScheduleWriter::Register AesScheduleWriter::plain_term(std::size_t term) {
  if (term < group_terms) return "%key" + AesText::number(term);
  if (term < text_terms) return "%loop" + AesText::number(term - group_terms);
  return "%in" + AesText::number(term - text_terms);
}

std::vector<Sum> AesScheduleWriter::cheapest_parts(const Sum& sum, std::size_t level) const {
  std::vector<const Value*> near;
  for (std::size_t l = level; l <= text_.top(); ++l) {
    const auto& values = values_[l];
    for (std::size_t i = values.size() > most_near ? values.size() - most_near : 0; i < values.size(); ++i) {
      near.push_back(&values[i]);
    }
  }
  std::vector<Sum> best;
  std::size_t least = operations(0, sum);
  const auto consider = [&](std::initializer_list<const Value*> values) {
    Sum rest = sum;
    for (const Value* value : values) rest = rest ^ value->sum;
    if (rest.terms.count() > 5) return;
    const std::size_t count = operations(values.size(), rest);
    if (count >= least) return;
    least = count;
    best.clear();
    for (const Value* value : values) best.push_back(value->sum);
  };
  for (std::size_t i = 0; i < near.size(); ++i) {
    consider({near[i]});
    for (std::size_t j = i + 1; j < near.size(); ++j) {
      consider({near[i], near[j]});
      for (std::size_t k = j + 1; k < near.size(); ++k) consider({near[i], near[j], near[k]});
    }
  }
  const Sum outer = outside(sum, level + 1);
  if (level < text_.top() && outer.terms.count() > 1 && operations(1, sum ^ outer) < least) best = {outer};
  return best;
}

AesScheduleWriter::Register AesScheduleWriter::write(const Sum& sum) {
  const std::size_t level = circuit_.level(sum);
  if (const auto found = find_value(sum)) return *found;
  Sum rest = sum;
  std::vector<std::string> plain;
  for (const Sum& part : cheapest_parts(sum, level)) {
    plain.push_back(write(part));
    rest = rest ^ part;
  }
  std::vector<std::size_t> masked;
  for (std::size_t i = 0; i < rest.terms.size(); ++i) {
    if (!rest.terms[i]) continue;
    if (i < sbox_terms) {
      plain.push_back(plain_term(i));
    } else {
      sbox_entry(i);
      masked.push_back(i);
    }
  }
  if (rest.constant != 0) plain.push_back(AesText::number(rest.constant));
  Register value;
  if (!plain.empty()) value = text_.add(level, plain);
  for (const std::size_t term : masked) value = text_.add_byte(level, value, entries_[term], circuit_.lookup(term).to);
  values_[level].push_back({sum, value});
  return value;
}

std::optional<AesScheduleWriter::Register> AesScheduleWriter::find_value(const Sum& sum) const {
  for (const auto& values : values_) {
    for (const Value& value : values) {
      if (value.sum == sum) return value.name;
    }
  }
  return std::nullopt;
}

}  // namespace warpcipher::search::cuda
