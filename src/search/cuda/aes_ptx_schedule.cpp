// SPDX-License-Identifier: Apache-2.0
#include "search/cuda/aes_ptx_schedule.hpp"

#include <initializer_list>

namespace warpcipher::search::cuda {

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
