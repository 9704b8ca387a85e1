// SPDX-License-Identifier: Apache-2.0
// A batch in the background: who hears of its end, and when. tests/unit/capi has the rest.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "dispatch/batch.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

struct Text {
  std::mt19937 random{1};
  test::Sample sample{random, find_algorithm("aes-128-ctr"), Direction::encrypt, 16};

  const Message& message() const { return sample.message; }
};

TEST(BackgroundBatch, TellsItsEndBeforeItIsDone) {
  Text text;
  Batch batch("reference");
  batch.add(text.message());
  bool done_before = true;
  std::vector<Result> told;
  batch.start(nullptr, [&](const std::vector<Result>* results) {
    done_before = batch.is_done();
    told = *results;
  });
  EXPECT_EQ(batch.wait(), Status::ok);
  EXPECT_FALSE(done_before);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].written, 16u);
}

TEST(BackgroundBatch, TellsThatNoMessageWasRun) {
  Text text;
  Batch batch("no such engine");
  batch.add(text.message());
  bool failed = false;
  batch.start(nullptr, [&](const std::vector<Result>* results) { failed = results == nullptr; });
  EXPECT_THROW(batch.wait(), Error);
  EXPECT_TRUE(failed);
}

// Text in device memory: start() looks for the engine, but wait() throws.
TEST(BackgroundBatch, ThrowsWhereItIsWaitedForWhatKeepsADeviceBatchFromRunning) {
  Text text;
  Batch batch("cpu");
  Message message = text.message();
  message.memory = Memory::device;
  batch.add(message);
  ASSERT_NO_THROW(batch.start(nullptr));
  EXPECT_THROW(batch.wait(), Error);
  EXPECT_TRUE(batch.is_done());
}

// Nobody waits, and the thread of the batch has the last reference to it.
TEST(BackgroundBatch, MayEndInItsOwnThread) {
  Text text;
  std::promise<void> end;
  struct Owner {
    explicit Owner(std::promise<void>& promise) : gone{promise} {}
    struct Gone {
      std::promise<void>& promise;
      ~Gone() { promise.set_value(); }
    } gone;
    Batch batch{"reference"};  // destroyed before `gone`
  };
  auto owner = std::make_shared<Owner>(end);
  owner->batch.add(text.message());
  Batch& batch = owner->batch;  // start() still runs when the thread may end
  std::promise<void> released;
  batch.start(nullptr, [owner, wait = released.get_future().share()](const std::vector<Result>*) { wait.wait(); });
  owner.reset();
  released.set_value();
  end.get_future().wait();
}

}  // namespace
}  // namespace warpcipher
