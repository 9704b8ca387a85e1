// SPDX-License-Identifier: Apache-2.0
#include "search/searcher.hpp"

#include <utility>

#include "core/fork.hpp"

namespace warpcipher::search {
namespace {

class ReferenceTask final : public SearchTask {
 public:
  ReferenceTask(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test)
      : space_(std::move(space)), test_(std::move(test)) {}

  std::uint64_t preferred_count() const override { return 1u << 14; }

  std::uint64_t run(const KeyNumber& first, std::uint64_t count, std::vector<KeyNumber>& hits,
                    const std::atomic<bool>& cancel) override {
    KeyCursor cursor(*space_, first);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (cancel.load(std::memory_order_relaxed)) return i;
      if (i > 0) cursor.next();
      if (test_->passes(cursor.key())) hits.push_back(first + KeyNumber(i));
    }
    return count;
  }

 private:
  std::shared_ptr<const KeySpace> space_;
  std::shared_ptr<const KeyTest> test_;
};

class ReferenceSearcher final : public Searcher {
 public:
  std::string_view name() const override { return "reference"; }
  std::string_view description() const override { return "one key after the other, on one core: for tests"; }
  const std::string& unavailable_reason() const override { return reason_; }
  std::vector<std::string> devices() const override { return {"one core"}; }
  std::unique_ptr<SearchTask> prepare(std::shared_ptr<const KeySpace> space, std::shared_ptr<const KeyTest> test,
                                      std::size_t) override {
    return std::make_unique<ReferenceTask>(std::move(space), std::move(test));
  }

 private:
  std::string reason_;
};

}  // namespace

Searcher& reference_searcher() {
  static constinit FirstUse<ReferenceSearcher> searcher;
  return searcher.get();
}

}  // namespace warpcipher::search
