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

void add(std::vector<Range>& ranges, const std::uint8_t* data, std::size_t len, std::size_t message) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  if (len != 0) ranges.push_back({begin, begin + len, static_cast<std::uint32_t>(message)});
}

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

}  // namespace

void check_overlap_between(std::span<const Message> messages) {
  if (messages.size() < 2) return;
  std::vector<Range> reads, writes;
  reads.reserve(2 * messages.size());
  writes.reserve(2 * messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[i];
    add(reads, m.in, m.in_len, i);
    add(writes, m.out, m.output_len(), i);
    add(m.direction == Direction::encrypt ? writes : reads, m.tag, m.tag_len, i);
  }
  sort_disjoint(writes);
  for (const Range& read : reads) {
    auto write =
        std::partition_point(writes.begin(), writes.end(), [&](const Range& w) { return w.end <= read.begin; });
    for (; write != writes.end() && write->begin < read.end; ++write) {
      if (write->message != read.message) fail(read.message, write->message, " reads where message ");
    }
  }
}

}  // namespace warpcipher
