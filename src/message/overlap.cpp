// SPDX-License-Identifier: Apache-2.0
#include "message/overlap.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "core/sort_runs.hpp"
#include "core/thread_pool.hpp"

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

  // A tag that directly follows its text makes one range with it.
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

// Sorts by begin. Throws when two messages write the same byte.
void sort_disjoint(std::vector<Range>& writes) {
  sort_runs(writes, [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < writes.size(); ++i) {
    if (writes[i].begin < writes[i - 1].end) fail(writes[i].message, writes[i - 1].message, " writes where message ");
  }
}

// Messages that a core checks at a time. For fewer, waking another core would take longer than the check.
constexpr std::size_t messages_at_once = 8192;

// Ranges that are further apart count as two buffers: a third may lie between them.
constexpr std::size_t most_gap = std::size_t{64} << 10;

// From the first to the last byte of ascending ranges, with the gaps between them.
struct Stretch {
  std::uintptr_t begin;
  std::uintptr_t end;
};

void add_range(std::vector<Stretch>& stretches, const std::uint8_t* data, std::size_t len) {
  if (len == 0) return;
  const auto from = reinterpret_cast<std::uintptr_t>(data);
  if (!stretches.empty() && stretches.back().end <= from && from - stretches.back().end <= most_gap) {
    stretches.back().end = from + len;
  } else {
    stretches.push_back({from, from + len});
  }
}

// What some messages read and write. Tags that do not directly follow a text may lie in a buffer of their own.
struct Stretches {
  std::vector<Stretch> reads, writes, tags_read, tags_written;

  void add(const Message& m) {
    // In place a message reads what it writes itself, and no other message may write there.
    if (m.in != m.out || m.in_len > m.output_len()) add_range(reads, m.in, m.in_len);
    add_range(writes, m.out, m.output_len());
    if (m.tag_len == 0) return;
    if (m.direction == Direction::encrypt) {
      add_range(m.tag == m.out + m.output_len() ? writes : tags_written, m.tag, m.tag_len);
    } else {
      add_range(m.tag == m.in + m.in_len && m.in != m.out ? reads : tags_read, m.tag, m.tag_len);
    }
  }

  void add(const Stretches& other) {
    const auto append = [](std::vector<Stretch>& to, const std::vector<Stretch>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(reads, other.reads);
    append(reads, other.tags_read);
    append(writes, other.writes);
    append(writes, other.tags_written);
  }

  std::size_t count() const { return reads.size() + writes.size() + tags_read.size() + tags_written.size(); }

  // Whether written stretches overlap neither each other nor stretches that are read.
  bool are_apart() {
    std::sort(writes.begin(), writes.end(), [](Stretch a, Stretch b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < writes.size(); ++i) {
      if (writes[i].begin < writes[i - 1].end) return false;
    }
    return std::none_of(reads.begin(), reads.end(), [&](Stretch read) {
      const auto first =
          std::partition_point(writes.begin(), writes.end(), [&](Stretch w) { return w.end <= read.begin; });
      return first != writes.end() && first->begin < read.end;
    });
  }
};

// A fast check without lists: true means that no message reads or writes where another writes. It treats the memory as
// a few stretches. Most batches pass: texts follow each other in one buffer, or in one for each client, and results do
// so in another or in place.
bool are_plainly_apart(std::span<const Message> messages) {
  constexpr std::size_t most = 1024;  // of some messages
  Stretches all;
  std::atomic<bool> are_few{true};
  std::mutex mutex;
  ThreadPool::instance().parallel_for(messages.size(), messages_at_once, [&](std::size_t begin, std::size_t end) {
    Stretches some;
    for (std::size_t i = begin; i < end && some.count() <= most; ++i) some.add(messages[i]);
    if (some.count() > most) are_few = false;
    if (!are_few) return;
    const std::lock_guard lock(mutex);
    all.add(some);
  });
  return are_few && all.are_apart();
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
  auto first = writes.list.begin();  // of the writes that end after the beginning of `read`
  std::uintptr_t last_begin = 0;
  for (const Range& read : reads.list) {
    // Reads are mostly in order too, above all in place: then the search continues where the last one ended.
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
