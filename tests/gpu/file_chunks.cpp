// SPDX-License-Identifier: Apache-2.0
#include "file_chunks.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chunk_file.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/read_chunks.hpp"
#include "force.hpp"

// Of the emulated GPU: how many allocations of device memory succeed from now on; -1: all.
[[gnu::weak]] extern int emulated_allocations_left;

namespace {

using namespace conformance;

class Test {
 public:
  explicit Test(const Algorithm& algorithm) : name_(algorithm.name) {}

  void check(bool is_right, const std::string& what) {
    ++cases_;
    if (is_right) return;
    ++failures_;
    std::printf("%s, chunks of a file: %s\n", name_.c_str(), what.c_str());
  }

  int report() const {
    std::printf("%-16s %4zu reads of files %s\n", name_.c_str(), cases_, failures_ == 0 ? "ok" : "FAILED");
    std::fflush(stdout);
    return failures_;
  }

 private:
  const std::string name_;
  std::size_t cases_ = 0;
  int failures_ = 0;
};

Layout random_layout(bool quick, bool is_aead) {
  Layout layout;
  const std::size_t lengths[] = {0, 1, 15, 16, 17, 300, 4080, 4096, 4097, 16384};
  const std::size_t count = 1 + random_below(quick ? 12 : 200);
  const bool one_length = random_below(2) == 0;
  const std::size_t len = lengths[random_below(10)];
  for (std::size_t i = 0; i < count; ++i) layout.lengths.push_back(one_length ? len : lengths[random_below(10)]);
  layout.keys = random_below(2) == 0 ? 1 : 3;
  layout.iv_in_file = random_below(3) == 0;
  layout.tags_given = random_below(3) == 0;
  layout.aad = is_aead && random_below(2) == 0;
  layout.gaps = random_below(2) == 0;
  layout.parts = random_below(2) == 0;
  return layout;
}

ReadOptions random_options() {
  const std::size_t threads[] = {0, 1, 2, 5, SIZE_MAX / 2 + 1}, pieces[] = {1, 5000, 20000, 0, SIZE_MAX};
  ReadOptions options;
  options.threads = threads[random_below(5)];
  options.piece_len = pieces[random_below(5)];
  return options;
}

void test_layouts(const Algorithm& algorithm, bool quick, Test& test) {
  for (unsigned i = 0; i < (quick ? 12 : 200); ++i) {
    Layout layout = random_layout(quick, algorithm.is_aead());
    if (i == 3) layout.begin = (std::uint64_t{5} << 30) + 3;  // the file is sparse
    TestChunks chunks(algorithm, layout);
    std::optional<ReadFailure> failure;
    const Bytes got =
        chunks.read(static_cast<int>(i % 2) * (cuda_engine().devices().size() > 1 ? 1 : 0), random_options(), failure);
    test.check(!failure && chunks.error().empty() && got == chunks.expected(),
               "layout " + std::to_string(i) + ": " +
                   (failure ? "chunk " + std::to_string(failure->chunk) + " failed" : "other bytes") + chunks.error());
  }
}

// Reads that are decrypted as a whole, of several pieces: all right, and wrong in one place or two.
void test_joint(const Algorithm& algorithm, bool quick, Test& test) {
  for (unsigned i = quick ? 1 : 0; i < 6; i += quick ? 3 : 1) {
    Layout layout;
    layout.lengths.assign(70 + random_below(30), 16384 - random_below(3));
    layout.keys = i % 2 == 0 ? 1 : 3;
    layout.iv_in_file = i % 3 == 1;
    layout.tags_given = i % 3 == 2;
    layout.parts = i >= 3;
    layout.ends_alone = true;
    TestChunks chunks(algorithm, layout);
    std::optional<ReadFailure> failure;
    test.check(chunks.read(0, {}, failure) == chunks.expected() && !failure && chunks.error().empty(),
               "joint read " + std::to_string(i) + ": other bytes" + chunks.error());
    const std::size_t bad = random_below(chunks.count());
    if (i % 2 == 1 && bad + 1 != chunks.count()) chunks.cut(chunks.count() - 1);
    chunks.damage(bad);
    const Bytes got = chunks.read(0, {}, failure);
    test.check(failure && failure->chunk == bad && failure->kind == ReadFailure::Kind::bad_tag,
               "joint read " + std::to_string(i) + " reported as of chunk " +
                   (failure ? std::to_string(failure->chunk) : "none") + ", not " + std::to_string(bad) +
                   chunks.error());
    test.check(got == chunks.wiped(), "joint read " + std::to_string(i) + " leaves text");
  }
}

// Reads by windows, more of them than the ring has: all right, and wrong in several places: the first is reported.
void test_windows(const Algorithm& algorithm, bool quick, Test& test) {
  for (unsigned i = quick ? 1 : 0; i < 12; i += quick ? 3 : 1) {
    Layout layout;
    for (std::size_t k = 110 + random_below(30); k > 0; --k) layout.lengths.push_back(4096 - random_below(2) * 1000);
    layout.keys = i % 2 == 0 ? 1 : 3;
    layout.iv_in_file = i % 3 == 1;
    layout.tags_given = i % 3 == 2;
    layout.parts = layout.ends_alone = i % 4 != 0;
    TestChunks chunks(algorithm, layout);
    ReadOptions options;
    options.threads = 1 + random_below(6);
    options.piece_len = i % 4 == 3 ? 10'000 : 5000;
    std::optional<ReadFailure> failure;
    test.check(chunks.read(0, options, failure) == chunks.expected() && !failure && chunks.error().empty(),
               "windows " + std::to_string(i) + ": other bytes" + chunks.error());
    const std::size_t bad = random_below(chunks.count());
    if (i % 2 == 1 && bad + 1 != chunks.count()) chunks.cut(chunks.count() - 1);
    for (std::size_t k = bad; k < chunks.count(); k += 1 + random_below(40)) chunks.damage(k);
    const Bytes got = chunks.read(0, options, failure);
    test.check(failure && failure->chunk == bad && failure->kind == ReadFailure::Kind::bad_tag,
               "windows " + std::to_string(i) + " reported as of chunk " +
                   (failure ? std::to_string(failure->chunk) : "none") + ", not " + std::to_string(bad) +
                   chunks.error());
    test.check(got == chunks.wiped(), "windows " + std::to_string(i) + " leave text");
  }
}

void test_failures(const Algorithm& algorithm, bool quick, Test& test) {
  for (unsigned i = 0; i < (quick ? 8 : 60); ++i) {
    Layout layout = random_layout(quick, algorithm.is_aead());
    TestChunks chunks(algorithm, layout);
    const std::size_t bad = random_below(chunks.count());
    const bool cuts = i % 2 == 0 && chunks.len_in_file(bad) != 0;
    std::uint64_t end = 0;
    const bool is_later_cut = i % 4 == 1 && chunks.len_in_file(chunks.count() - 1) != 0;
    if (cuts) {
      end = chunks.cut(bad);
    } else {
      // A read failure after it comes first, and is not the first chunk's.
      if (is_later_cut && bad + 1 != chunks.count()) chunks.cut(chunks.count() - 1);
      for (std::size_t k = bad; k < chunks.count(); k += 3) chunks.damage(k);
    }
    std::optional<ReadFailure> failure;
    const Bytes got = chunks.read(0, random_options(), failure);
    const auto kind = cuts ? ReadFailure::Kind::ended : ReadFailure::Kind::bad_tag;
    test.check(failure && failure->kind == kind && failure->chunk == bad && failure->position == end,
               "failure " + std::to_string(i) + " reported as of chunk " +
                   (failure ? std::to_string(failure->chunk) : "none") + ", not " + std::to_string(bad) +
                   chunks.error());
    test.check(got == chunks.wiped(), "failure " + std::to_string(i) + " leaves text");
  }
}

// The state after an exception of the caller's; and reads to page-locked memory.
void test_remains(const Algorithm& algorithm, Test& test) {
  constexpr std::size_t room = std::size_t{64} << 10;
  Layout layout;
  layout.lengths.assign(60, 4096);
  layout.parts = true;
  TestChunks chunks(algorithm, layout);
  ReadOptions options;
  options.threads = 1;
  options.piece_len = room;
  std::optional<ReadFailure> failure;
  test.check(chunks.read(0, options, failure) == chunks.expected() && !failure, "a read of parts and wholes");
  DeviceEngine& engine = cuda_engine();
  std::vector<void*> kept;  // the pool gives what the slots had
  for (int i = 0; i < 4; ++i) kept.push_back(engine.allocate_pinned(room));
  const bool shows = std::any_of(kept.begin(), kept.end(), [&](const void* memory) {
    return chunks.shows_in(static_cast<const std::uint8_t*>(memory), room);
  });
  test.check(!shows, "plaintext in page-locked memory");
  for (void* const memory : kept) engine.free_pinned(memory, room, room);
  options.check = [calls = 0](bool) mutable {
    if (++calls == 3) throw std::runtime_error("interrupted");
  };
  options.piece_len = 20000;
  const Bytes got = chunks.read(0, options, failure);
  test.check(chunks.error() == "interrupted", "an exception of the caller's is lost");
  test.check(got == chunks.wiped(), "an exception leaves text");
}

// Memory of the device that cannot be had, at any place of a read.
void test_out_of_memory(const Algorithm& algorithm, Test& test) {
  if (&emulated_allocations_left == nullptr) return;  // a GPU has always too much
  for (const bool is_joint : {false, true}) {
    Layout layout;
    layout.lengths.assign(40, 16384);
    layout.ends_alone = layout.parts = true;
    TestChunks chunks(algorithm, layout);
    ReadOptions options;
    options.piece_len = is_joint ? 0 : 200'000;  // no test before had such slots: the library keeps memory
    bool is_done = false;
    for (int left = 0; !is_done && left < 1000; left += left < 12 ? 1 : 7) {
      std::optional<ReadFailure> failure;
      emulated_allocations_left = left + 1;  // the test itself takes one
      const Bytes got = chunks.read(0, options, failure);
      emulated_allocations_left = -1;
      is_done = chunks.error().empty();
      test.check(is_done ? got == chunks.expected() : got == chunks.wiped(),
                 "no memory after " + std::to_string(left) + " allocations: other bytes");
      test.check(is_done || chunks.error().find("memory") != std::string::npos, "another error: " + chunks.error());
    }
    test.check(is_done, "there is never enough memory");
  }
}

}  // namespace

int test_file_chunks(bool quick, const std::string& only, const std::function<bool()>& is_mine) {
  int failures = 0;
  for (const char* name : {"aes-128-gcm", "aes-256-gcm", "aes-256-ctr"}) {
    if ((!only.empty() && only != name) || !is_mine()) continue;
    Test test(find_algorithm(name));
    for (const char* columns : {"device", "host"}) {  // where pieces are planned
      force("columns", columns);
      test_layouts(find_algorithm(name), quick, test);
      test_failures(find_algorithm(name), quick, test);
      test_remains(find_algorithm(name), test);
    }
    force("columns", nullptr);
    test_joint(find_algorithm(name), quick, test);
    test_windows(find_algorithm(name), quick, test);
    test_out_of_memory(find_algorithm(name), test);
    failures += test.report();
  }
  return failures;
}
