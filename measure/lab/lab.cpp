// SPDX-License-Identifier: Apache-2.0
// The list of papers, and the checks that their jobs share.
#include "lab.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace warpcipher::lab {
namespace {

template <class Range>
std::string joined(const Range& names) {
  std::string text;
  for (const auto& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

// The entry of that name.
template <class List>
const auto& find(const List& list, std::string_view name, const char* what, const std::string& where = "") {
  std::vector<std::string_view> names;
  for (const auto& entry : list) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(Status::invalid_argument,
              "no " + std::string(what) + " '" + std::string(name) + "'" + where + ": there are " + joined(names));
}

}  // namespace

std::int64_t Parameters::take(const std::string& name, std::int64_t standard, std::int64_t least, std::int64_t most,
                              std::int64_t unit) {
  known_.push_back(name);
  const auto found = given_.find(name);
  const std::int64_t value = found == given_.end() ? standard : found->second;
  if (value < least || value > most || value % unit != 0) {
    throw Error(Status::invalid_argument, name + " is " + std::to_string(value) + ": expected " +
                                              std::to_string(least) + " to " + std::to_string(most) +
                                              (unit == 1 ? "" : ", a multiple of " + std::to_string(unit)));
  }
  return value;
}

void Parameters::check_all_taken() const {
  for (const auto& [name, value] : given_) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
      throw Error(Status::invalid_argument, "no parameter '" + name + "' here: this variant takes " + joined(known_));
    }
  }
}

std::span<const Paper> papers() {
  const auto and_also = [](std::vector<Variant> list, const std::vector<Variant>& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
  };
  static const Paper list[] = {
      {"yang2007", and_also(yang2007(), yang2007_blocks())},
      {"harrison2008", and_also(harrison2008(), harrison2008_payloads())},
      {"iwai2012", iwai2012()},
      {"quirem2013", quirem2013()},
      {"billava2022", billava2022()},
  };
  return list;
}

const Paper& find_paper(std::string_view name) { return find(papers(), name, "paper"); }

Job make_job(std::string_view paper, std::string_view variant, const Setting& setting) {
  const Variant& entry = find(find_paper(paper).variants, variant, "variant", " of " + std::string(paper));
  if (!entry.make) {
    throw Error(Status::engine_unavailable, "variant '" + std::string(variant) + "' of " + std::string(paper) +
                                                " cannot run here: " + std::string(entry.absent));
  }
  Job job = entry.make(setting);
  setting.parameters.check_all_taken();
  return job;
}

void check_blocks(const Data& data) {
  if (data.in_len % 16 != 0 || data.out_len != data.in_len) {
    throw Error(Status::invalid_argument, "in is " + std::to_string(data.in_len) + " bytes and out " +
                                              std::to_string(data.out_len) + ": expected as many, a multiple of 16");
  }
}

std::size_t whole_blocks_of_words(const Data& data, std::size_t block_threads) {
  check_len("in", data.in_len, {0});
  if (data.out_len == 0 || data.out_len % (4 * block_threads) != 0) {
    throw Error(Status::invalid_argument, "out is " + std::to_string(data.out_len) +
                                              " bytes: expected 4 for each thread, and whole blocks of " +
                                              std::to_string(block_threads) + " threads");
  }
  return data.out_len / 4;
}

void check_len(const char* what, std::size_t len, std::initializer_list<std::size_t> expected) {
  if (std::find(expected.begin(), expected.end(), len) != expected.end()) return;
  std::vector<std::string> sizes;
  for (const std::size_t size : expected) sizes.push_back(std::to_string(size));
  throw Error(Status::invalid_argument,
              std::string(what) + " is " + std::to_string(len) + " bytes: expected " + joined(sizes));
}

}  // namespace warpcipher::lab
