// SPDX-License-Identifier: Apache-2.0
#include "batch/overlap.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace warpcipher {
namespace {

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::uint32_t message;
};

// Ranges of one kind, and the smallest range that holds them all.
struct Ranges {
  std::vector<Range> list;
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;

  // A tag right behind its text makes one range with it.
  void add(const std::uint8_t* data, std::size_t len, std::size_t index) {
    if (len == 0) return;
    const auto message = static_cast<std::uint32_t>(index);
    const auto from = reinterpret_cast<std::uintptr_t>(data);
    begin = std::min(begin, from);
    end = std::max(end, from + len);
    if (!list.empty() && list.back().message == message && list.back().end == from) {
      list.back().end += len;
    } else {
      list.push_back({from, from + len, message});
    }
  }
};

[[noreturn]] void fail(std::uint32_t a, std::uint32_t b, const char* what) {
  throw Error(Status::invalid_argument, "message " + std::to_string(a) + what + std::to_string(b) +
                                            " writes: messages of a batch run in any order, so each needs an output "
                                            "of its own");
}

// Sorted by begin, which they mostly are already. Throws when two messages write the same byte.
void sort_disjoint(std::vector<Range>& writes) {
  const auto before = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  if (!std::is_sorted(writes.begin(), writes.end(), before)) std::sort(writes.begin(), writes.end(), before);
  for (std::size_t i = 1; i < writes.size(); ++i) {
    if (writes[i].begin < writes[i - 1].end) fail(writes[i].message, writes[i - 1].message, " writes where message ");
  }
}

// Whether no message reads where any writes, and each writes behind those before it: one way to be right, which needs
// no lists. Most batches are so: texts lie one behind the other, and results in a buffer of their own.
bool are_plainly_apart(std::span<const Message> messages) {
  std::uintptr_t reads_begin = UINTPTR_MAX, reads_end = 0;
  std::uintptr_t writes_begin = UINTPTR_MAX, writes_end = 0;
  bool in_order = true;
  for (const Message& m : messages) {
    const auto in = reinterpret_cast<std::uintptr_t>(m.in), out = reinterpret_cast<std::uintptr_t>(m.out);
    const std::size_t out_len = m.output_len();
    if (m.in_len != 0) {
      reads_begin = std::min(reads_begin, in);
      reads_end = std::max(reads_end, in + m.in_len);
    }
    if (out_len == 0 && m.tag_len == 0) continue;
    if (m.tag_len != 0) return false;
    in_order = in_order && writes_end <= out;
    writes_begin = std::min(writes_begin, out);
    writes_end = std::max(writes_end, out + out_len);
  }
  return in_order && (reads_end <= writes_begin || writes_end <= reads_begin);
}

}  // namespace

void check_overlap_between(std::span<const Message> messages) {
  if (messages.size() < 2 || are_plainly_apart(messages)) return;
  Ranges reads, writes;
  reads.list.reserve(messages.size());
  writes.list.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[i];
    reads.add(m.in, m.in_len, i);
    writes.add(m.out, m.output_len(), i);
    (m.direction == Direction::encrypt ? writes : reads).add(m.tag, m.tag_len, i);
  }
  sort_disjoint(writes.list);
  if (reads.end <= writes.begin || writes.end <= reads.begin) return;  // two buffers, the usual case
  auto first = writes.list.begin();  // of the writes that end behind the beginning of `read`
  std::uintptr_t last_begin = 0;
  for (const Range& read : reads.list) {
    // Reads mostly come in order too, in place above all: then the search goes on where the last one ended.
    const auto before = [&](const Range& w) { return w.end <= read.begin; };
    if (read.begin < last_begin || (first != writes.list.end() && first + 1 < writes.list.end() && before(first[1]))) {
      first = std::partition_point(writes.list.begin(), writes.list.end(), before);
    } else if (first != writes.list.end() && before(*first)) {
      ++first;
    }
    last_begin = read.begin;
    for (auto write = first; write != writes.list.end() && write->begin < read.end; ++write) {
      if (write->message != read.message) fail(read.message, write->message, " reads where message ");
    }
  }
}

}  // namespace warpcipher
