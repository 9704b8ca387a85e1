// SPDX-License-Identifier: Apache-2.0
#include "search/cpu/searcher.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "core/fork.hpp"
#include "core/thread_pool.hpp"
#include "search/cpu/scanner.hpp"

namespace warpcipher::search {

namespace cpu {

namespace {

// Takes any search, key by key; AES on processors without AES instructions.
class PlainScanner final : public Scanner {
 public:
  PlainScanner(SpacePointer space, TestPointer test) : space_(std::move(space)), test_(std::move(test)) {}

  std::string name() const override { return "plain code"; }
  std::uint64_t grain() const override { return 1u << 12; }
  void run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits) const override {
    KeyCursor cursor(*space_, first);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) cursor.next();
      if (test_->passes(cursor.key())) hits.push_back(first + KeyNumber(i));
    }
  }

 private:
  SpacePointer space_;
  TestPointer test_;
};

}  // namespace

std::unique_ptr<Scanner> make_plain_scanner(const SpacePointer& space, const TestPointer& test) {
  return std::make_unique<PlainScanner>(space, test);
}

std::vector<std::unique_ptr<Scanner>> scanners(const SpacePointer& space, const TestPointer& test) {
  std::vector<std::unique_ptr<Scanner>> all;
  for (const auto make : {des_meet_scanners, des_scanners, aes_scanners}) {
    for (std::unique_ptr<Scanner>& made : make(space, test)) all.push_back(std::move(made));
  }
  all.push_back(make_plain_scanner(space, test));
  return all;
}

}  // namespace cpu

namespace {

class CpuTask final : public SearchTask {
 public:
  explicit CpuTask(std::unique_ptr<cpu::Scanner> scanner) : scanner_(std::move(scanner)) {}

  // About half a second of all cores.
  std::uint64_t preferred_count() const override {
    return std::bit_ceil(std::uint64_t{64} * scanner_->grain() * ThreadPool::instance().threads() / 2);
  }

  std::uint64_t run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                    const std::atomic<bool>& cancel) override {
    // A turn runs to its end or not at all, so that a cancelled run has tested one range without gaps.
    ThreadPool& pool = ThreadPool::instance();
    const std::uint64_t grain = scanner_->grain();
    const std::uint64_t turn = 4 * pool.threads() * grain;
    for (std::uint64_t done = 0; done < count;) {
      if (cancel.load(std::memory_order_relaxed)) return done;
      const KeyNumber begin = first + KeyNumber(done);
      // The first part ends at a multiple of the grain; all others are whole grains.
      const std::uint64_t skew = begin.low64() % grain;
      const std::uint64_t taken = std::min(turn - skew, count - done);
      const auto pieces = static_cast<std::size_t>((skew + taken + grain - 1) / grain);
      std::vector<KeyNumber> found;
      std::mutex mutex;
      pool.parallel_for(pieces, 1, [&](std::size_t piece, std::size_t) {
        if (cancel.load(std::memory_order_relaxed)) return;
        const std::uint64_t low = piece == 0 ? 0 : piece * grain - skew;
        const std::uint64_t high = std::min((piece + 1) * grain - skew, taken);
        std::vector<KeyNumber> mine;
        scanner_->run(begin + KeyNumber(low), high - low, mine);
        if (mine.empty()) return;
        const std::lock_guard lock(mutex);
        found.insert(found.end(), mine.begin(), mine.end());
      });
      if (cancel.load(std::memory_order_relaxed)) return done;
      hits.insert(hits.end(), found.begin(), found.end());
      done += taken;
    }
    return count;
  }

 private:
  std::unique_ptr<cpu::Scanner> scanner_;
};

class CpuSearcher final : public Searcher {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view description() const override {
    return "all cores: DES bitsliced on vectors, AES by the processor's instructions";
  }
  const std::string& unavailable_reason() const override { return reason_; }
  std::vector<std::string> devices() const override {
    const std::size_t cores = ThreadPool::instance().threads();
    return {std::to_string(cores) + (cores == 1 ? " core" : " cores")};
  }
  std::unique_ptr<SearchTask> prepare(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                      std::size_t) override {
    return std::make_unique<CpuTask>(std::move(cpu::scanners(space, test).front()));
  }

 private:
  std::string reason_;
};

}  // namespace

Searcher& cpu_searcher() {
  static constinit FirstUse<CpuSearcher> searcher;
  return searcher.get();
}

}  // namespace warpcipher::search
