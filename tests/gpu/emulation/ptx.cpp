// SPDX-License-Identifier: Apache-2.0
#include "ptx.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace emulation {

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text) {
    if (c == ' ' || c == ',' || c == '{' || c == '}') {
      if (!part.empty()) parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

}  // namespace

void PtxKernel::refuse(const std::string& what, const std::string& where) {
  throw std::runtime_error("emulated GPU, PTX: " + what + ": " + where);
}

std::uint32_t& PtxKernel::global_word(std::uint64_t address) {
  auto* const word = reinterpret_cast<std::uint32_t*>(address);
  static_cast<void>(*static_cast<volatile std::uint32_t*>(word));
  return *word;
}

PtxKernel::PtxKernel(const std::string& text) {
  std::map<std::string, std::uint32_t> labels;
  std::vector<std::pair<std::size_t, std::string>> branches;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    parse_line(text.substr(at, end - at), labels, branches);
    at = end == std::string::npos ? text.size() : end + 1;
  }
  for (const auto& [index, label] : branches) {
    if (labels.find(label) == labels.end()) refuse("no such label", label);
    instructions_[index].to = labels[label];
  }
}

std::uint32_t PtxKernel::number_of(const std::string& name) {
  return registers_.try_emplace(name, static_cast<std::uint32_t>(registers_.size())).first->second;
}

PtxKernel::Operand PtxKernel::operand(const std::string& text) {
  if (text[0] == '%') return {false, number_of(text)};
  if (text[0] < '0' || text[0] > '9') refuse("neither a register nor a number", text);
  return {true, static_cast<std::uint32_t>(std::stoul(text, nullptr, 0))};
}

void PtxKernel::parse_line(std::string line, std::map<std::string, std::uint32_t>& labels,
                           std::vector<std::pair<std::size_t, std::string>>& branches) {
  const auto starts = [&](const char* prefix) { return line.rfind(prefix, 0) == 0; };
  if (line.empty() || line == "{" || line == "}") return;
  if (starts(".visible .entry ")) {
    const std::size_t open = line.find('(');
    name_ = line.substr(16, open - 16);
    const std::size_t bracket = line.find('[');
    parameter_len_ = std::stoul(line.substr(bracket + 1));
    return;
  }
  if (starts(".maxntid ")) {
    threads_ = static_cast<std::uint32_t>(std::stoul(line.substr(9)));
    return;
  }
  if (starts(".local ")) {
    local_len_ = std::stoul(line.substr(line.find('[') + 1));
    return;
  }
  for (const char* ignored : {".version", ".target", ".address_size", ".extern .shared", ".minnctapersm", ".reg"}) {
    if (starts(ignored)) return;
  }
  if (line.back() == ':') {
    labels[line.substr(0, line.size() - 1)] = static_cast<std::uint32_t>(instructions_.size());
    return;
  }
  if (line.back() != ';') refuse("no semicolon", line);
  line.pop_back();
  Instruction instruction;
  std::vector<std::string> parts = split(line);
  if (parts[0][0] == '@') {
    instruction.negated = parts[0][1] == '!';
    instruction.guard = static_cast<std::int32_t>(number_of(parts[0].substr(instruction.negated ? 2 : 1)));
    parts.erase(parts.begin());
  }
  // Instructions whose operands are a register and this number of sources.
  struct Plain {
    const char* name;
    Code code;
    std::size_t sources;
  };
  static constexpr Plain plain_instructions[] = {
      {"add.u32", Code::add, 2},         {"add.u64", Code::add64, 2},
      {"and.b32", Code::and_, 2},        {"and.pred", Code::and_, 2},
      {"bfe.s32", Code::bfe, 3},         {"bfe.u32", Code::bfe_unsigned, 3},
      {"bfind.u32", Code::bfind, 1},     {"dp4a.u32.u32", Code::dp4a, 3},
      {"mad.lo.u32", Code::mad, 3},      {"mul.wide.u32", Code::mul_wide, 2},
      {"not.b32", Code::not_, 1},        {"or.b32", Code::or_, 2},
      {"prmt.b32", Code::prmt, 3},       {"selp.u32", Code::selp, 3},
      {"setp.eq.u32", Code::setp_eq, 2}, {"setp.ge.u32", Code::setp_ge, 2},
      {"setp.lt.u32", Code::setp_lt, 2}, {"setp.ne.u32", Code::setp_ne, 2},
      {"shl.b32", Code::shl, 2},         {"shr.u32", Code::shr, 2},
      {"sub.u32", Code::sub, 2},         {"vote.sync.any.pred", Code::vote_any, 2},
      {"xor.b32", Code::xor_, 2},
  };
  const std::string_view code = parts[0];
  const auto plain = [&](Code which, std::size_t sources) {
    if (parts.size() != sources + 2) refuse("operands", line);
    instruction.code = which;
    instruction.to = number_of(parts[1]);
    for (std::size_t i = 0; i < sources; ++i) instruction.from[i] = operand(parts[2 + i]);
  };
  const auto address = [&](const std::string& text) {  // [base+offset]
    if (text.front() != '[' || text.back() != ']') refuse("address", line);
    const std::size_t plus = text.find('+');
    const std::string base = text.substr(1, std::min(plus, text.size() - 1) - 1);
    instruction.extra = plus == std::string::npos ? 0 : static_cast<std::uint32_t>(std::stoul(text.substr(plus + 1)));
    return base;
  };
  const auto* const simple = std::ranges::find(plain_instructions, code, &Plain::name);
  if (simple != std::end(plain_instructions)) {
    plain(simple->code, simple->sources);
  } else if (code == "lop3.b32") {
    instruction.extra = static_cast<std::uint32_t>(std::stoul(parts.back()));
    parts.pop_back();
    plain(Code::lop3, 3);
  } else if (code == "bar.sync") {
    instruction.code = Code::bar;
  } else if (code == "mov.u32" && (parts[2] == "%tid.x" || parts[2] == "%ctaid.x")) {
    instruction.code = Code::special;
    instruction.to = number_of(parts[1]);
    instruction.extra = parts[2] == "%tid.x" ? 0 : 1;
  } else if (code == "mov.u32" &&
             (parts[2] == "kept" || parts[2] == "notes")) {  // shared and local memory start at address 0
    instruction.code = Code::mov;
    instruction.to = number_of(parts[1]);
    instruction.from[0] = {true, 0};
  } else if (code == "mov.u32") {
    plain(Code::mov, 1);
  } else if (code == "ld.param.u32" || code == "ld.param.u64") {
    instruction.code = code == "ld.param.u32" ? Code::ld_param : Code::ld_param64;
    instruction.to = number_of(parts[1]);
    if (address(parts[2]) != "parameters") refuse("parameter", line);
  } else if (code == "ld.volatile.shared.u32" || code == "ld.shared.u32" || code == "ld.global.u32") {
    instruction.code = code == "ld.global.u32" ? Code::ld_global : Code::ld_shared;
    instruction.to = number_of(parts[1]);
    instruction.from[0] = operand(address(parts[2]));
  } else if (code == "ld.volatile.shared.v2.u32" || code == "ld.volatile.shared.v4.u32") {
    const std::size_t words = code == "ld.volatile.shared.v2.u32" ? 2 : 4;
    instruction.code = words == 2 ? Code::ld_shared2 : Code::ld_shared4;
    instruction.to = number_of(parts[1]);
    for (std::size_t i = 1; i < words; ++i) instruction.from[i] = {false, number_of(parts[1 + i])};
    instruction.from[0] = operand(address(parts[1 + words]));
  } else if (code == "st.volatile.shared.u32" || code == "st.shared.u32") {
    if (parts.size() != 3) refuse("operands", line);
    instruction.code = Code::st_shared;
    instruction.from[0] = operand(address(parts[1]));
    instruction.from[1] = operand(parts[2]);
  } else if (code == "ld.local.u32" || code == "ld.local.v2.u32") {
    instruction.code = code == "ld.local.u32" ? Code::ld_local : Code::ld_local2;
    instruction.to = number_of(parts[1]);
    if (instruction.code == Code::ld_local2) instruction.also_to = number_of(parts[2]);
    instruction.from[0] = operand(address(parts.back()));
  } else if (code == "st.local.v2.u32") {
    instruction.code = Code::st_local2;
    instruction.from[0] = operand(address(parts[1]));
    instruction.from[1] = operand(parts[2]);
    instruction.from[2] = operand(parts[3]);
  } else if (code == "atom.global.add.u32") {
    instruction.code = Code::atom_add;
    instruction.to = number_of(parts[1]);
    instruction.from[0] = operand(address(parts[2]));
    instruction.from[1] = operand(parts[3]);
  } else if (code == "st.global.v4.u32") {
    instruction.code = Code::st_global4;
    instruction.to = operand(address(parts[1])).value;
    for (std::size_t i = 0; i < 4; ++i) instruction.from[i] = operand(parts[2 + i]);
  } else if (code == "bra" || code == "bra.uni") {
    instruction.code = Code::branch;
    branches.emplace_back(instructions_.size(), parts[1]);
  } else if (code == "ret") {
    instruction.code = Code::ret;
  } else {
    refuse("unknown instruction", line);
  }
  instructions_.push_back(instruction);
}

}  // namespace emulation
