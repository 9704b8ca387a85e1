// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "core/bytes.hpp"
#include "core/fork.hpp"
#include "core/sort_runs.hpp"
#include "core/thread_pool.hpp"
#include "message/checks.hpp"

namespace warpcipher {
namespace {

// A hash: a product of 128 bits, folded, with factors that are random in each process. So nobody can choose nonces that
// collide in the table.
class NonceHash {
 public:
  NonceHash() {
    std::random_device random;
    for (std::uint64_t& seed : seeds_) seed = std::uint64_t{random()} << 32 | random();
  }

  std::uint64_t operator()(const std::uint8_t* nonce, std::size_t len) const {
    std::uint64_t hash = seeds_[0] ^ len;
    for (; len > 12; nonce += 8, len -= 8) hash = fold(hash ^ load_be64(nonce), seeds_[1]);
    std::uint8_t last[12] = {};
    std::memcpy(last, nonce, len);
    return fold(hash ^ load_be64(last), seeds_[2] ^ load_be32(last + 8));
  }

 private:
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t seeds_[3];
};

int compare_nonces(const Message& x, const Message& y) {
  if (x.iv_len != y.iv_len) return x.iv_len < y.iv_len ? -1 : 1;
  return std::memcmp(x.iv, y.iv, x.iv_len);
}

// Lists messages whose nonce another message also has; a message may be listed more than once. The table holds first
// occurrences, with open addressing. Each entry has half of the hash and the number of the message, so the nonces of
// other messages are hardly ever read.
std::vector<std::uint32_t> find_repeated(std::span<const Message> messages, std::size_t sealing) {
  static constinit FirstUse<NonceHash> instance;
  const NonceHash& hash_of = instance.get();
  struct Entry {
    std::uint32_t hash;
    std::uint32_t message_plus_1;  // 0: empty
  };
  std::vector<Entry> table(std::bit_ceil(2 * sealing));
  const std::size_t mask = table.size() - 1;
  std::vector<std::uint32_t> repeated;
  const auto enter = [&](std::uint32_t i, std::uint64_t hash) {
    const Message& m = messages[i];
    const auto upper = static_cast<std::uint32_t>(hash >> 32);
    std::size_t place = hash & mask;
    for (; table[place].message_plus_1 != 0; place = (place + 1) & mask) {
      const std::uint32_t other = table[place].message_plus_1 - 1;
      if (table[place].hash == upper && compare_nonces(messages[other], m) == 0) {
        repeated.insert(repeated.end(), {other, i});
        return;
      }
    }
    table[place] = {upper, i + 1};
  };
  // Entries of a large table are in different cache lines: entries of a few messages are fetched at the same time.
  constexpr std::size_t at_once = 32;
  std::uint32_t numbers[at_once];
  std::uint64_t hashes[at_once];
  std::size_t gathered = 0;
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[i];
    if (needs_own_nonce(m)) {
      numbers[gathered] = i;
      hashes[gathered] = hash_of(m.iv, m.iv_len);
      __builtin_prefetch(&table[hashes[gathered] & mask], 1);
      ++gathered;
    }
    if (gathered == at_once || i + 1 == messages.size()) {
      for (std::size_t k = 0; k < gathered; ++k) enter(numbers[k], hashes[k]);
      gathered = 0;
    }
  }
  return repeated;
}

std::size_t count_sealing(std::span<const Message> messages) {
  constexpr std::size_t at_once = 8192;
  std::atomic<std::size_t> sealing{0};
  ThreadPool::instance().parallel_for(messages.size(), at_once, [&](std::size_t begin, std::size_t end) {
    const auto some = messages.subspan(begin, end - begin);
    sealing += static_cast<std::size_t>(std::count_if(some.begin(), some.end(), needs_own_nonce));
  });
  return sealing;
}

// Different key objects may have the same bytes: compare fingerprints. Keys of different algorithms differ.
int compare_keys(const Key& x, const Key& y) {
  if (&x == &y) return 0;
  if (&x.algorithm() != &y.algorithm()) return std::less<>()(&x.algorithm(), &y.algorithm()) ? -1 : 1;
  return std::memcmp(x.fingerprint().data(), y.fingerprint().data(), x.fingerprint().size());
}

}  // namespace

bool needs_own_nonce(const Message& m) {
  return m.direction == Direction::encrypt && m.algorithm().is_aead() && !m.algorithm().mode.nonces_may_repeat;
}

std::string repeated_nonce_rule(const Algorithm& algorithm) {
  const bool is_gcm = algorithm.mode.id == Mode::gcm;
  return (is_gcm ? "a GCM nonce" : "a nonce of " + std::string(algorithm.name)) +
         " must never be used twice with one key";
}

// In most batches there is one key, or all nonces differ. So keys are compared only where nonces are equal.
void check_nonces(std::span<const Message> messages) {
  if (messages.size() < 2) return;
  const std::size_t sealing = count_sealing(messages);
  if (sealing < 2) return;
  std::vector<std::uint32_t> repeated = find_repeated(messages, sealing);
  const auto compare = [&](std::uint32_t a, std::uint32_t b) {
    const int nonces = compare_nonces(messages[a], messages[b]);
    return nonces != 0 ? nonces : compare_keys(*messages[a].key, *messages[b].key);
  };
  std::sort(repeated.begin(), repeated.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = compare(a, b);
    return order != 0 ? order < 0 : a < b;
  });
  repeated.erase(std::unique(repeated.begin(), repeated.end()), repeated.end());
  const auto twice = std::adjacent_find(repeated.begin(), repeated.end(),
                                        [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) == 0; });
  if (twice == repeated.end()) return;
  refuse("messages ", twice[0], " and ", twice[1],
         " encrypt with the same key and the same nonce: ", repeated_nonce_rule(messages[twice[0]].algorithm()));
}

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
  refuse("message ", a, what, b,
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
constexpr std::size_t compared_at_once = 8192;

// Ranges that are further apart count as two buffers: a third may lie between them.
constexpr std::size_t most_unused = std::size_t{64} << 10;

// From the first to the last byte of ascending ranges, with the gaps between them.
struct Stretch {
  std::uintptr_t begin;
  std::uintptr_t end;
};

void add_range(std::vector<Stretch>& stretches, const std::uint8_t* data, std::size_t len) {
  if (len == 0) return;
  const auto from = reinterpret_cast<std::uintptr_t>(data);
  if (!stretches.empty() && stretches.back().end <= from && from - stretches.back().end <= most_unused) {
    stretches.back().end = from + len;
  } else {
    stretches.push_back({from, from + len});
  }
}

// The memory that some messages read and write. Tags that do not directly follow a text may lie in their own buffer.
struct Stretches {
  std::vector<Stretch> reads, writes, tags_read, tags_written;

  void add(const Message& m) {
    // In place a message reads its own output, and no other message may write there.
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
  ThreadPool::instance().parallel_for(messages.size(), compared_at_once, [&](std::size_t begin, std::size_t end) {
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
