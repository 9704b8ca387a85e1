// SPDX-License-Identifier: Apache-2.0
// The queue as a C program sees it: callbacks, handles, limits, closing; many threads at once.
#include <gtest/gtest.h>
#include <warpcipher.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
using KeyPointer = std::unique_ptr<wc_key, decltype(&wc_key_free)>;
using QueuePointer = std::unique_ptr<wc_queue, decltype(&wc_queue_free)>;
using JobPointer = std::unique_ptr<wc_job, decltype(&wc_job_free)>;

constexpr std::uint64_t hour = 3600ULL * 1'000'000;

KeyPointer make_key(const char* algorithm, std::size_t len) {
  wc_key* key = nullptr;
  const Bytes bytes(len, 7);
  EXPECT_EQ(wc_key_new(&key, algorithm, bytes.data(), bytes.size()), WC_OK) << wc_last_error();
  return {key, wc_key_free};
}

QueuePointer make_queue(const wc_queue_limits& limits = {}) {
  wc_queue* queue = nullptr;
  EXPECT_EQ(wc_queue_new(&queue, "cpu", &limits), WC_OK) << wc_last_error();
  return {queue, wc_queue_free};
}

// A GCM message that lies by itself: nonce and text are of its number.
struct Sealing {
  explicit Sealing(const wc_key* key, std::uint64_t number) : text(100, static_cast<unsigned char>(number)) {
    std::memcpy(nonce, &number, sizeof number);
    message.key = key;
    message.direction = WC_ENCRYPT;
    message.in = text.data();
    message.in_len = text.size();
    message.out = out;
    message.out_len = sizeof out;
    message.iv = nonce;
    message.iv_len = sizeof nonce;
    message.tag = tag;
    message.tag_len = sizeof tag;
  }
  Sealing(const Sealing&) = delete;
  Sealing& operator=(const Sealing&) = delete;

  bool is_right() const {
    Bytes wanted(sizeof out + sizeof tag);
    EXPECT_EQ(
        wc_seal(message.key, wanted.data(), wanted.size(), text.data(), text.size(), nonce, sizeof nonce, nullptr, 0),
        WC_OK);
    return std::memcmp(wanted.data(), out, sizeof out) == 0 &&
           std::memcmp(wanted.data() + sizeof out, tag, sizeof tag) == 0;
  }

  Bytes text;
  unsigned char out[100] = {};
  unsigned char nonce[12] = {};
  unsigned char tag[16] = {};
  wc_message message = {};
};

struct Told {
  std::atomic<int> calls{0};
  std::atomic<int> status{-1};
  static void callback(void* context, const wc_result* result, const char* failure) {
    auto* told = static_cast<Told*>(context);
    EXPECT_STREQ(failure, "");
    told->status = result->status;
    ++told->calls;
  }
};

TEST(CQueue, TellsTheCallbackAndTheHandle) {
  const auto key = make_key("aes-256-gcm", 32);
  const auto queue = make_queue();
  Sealing sealing(key.get(), 1);
  Told told;
  wc_job* made = nullptr;
  ASSERT_EQ(wc_queue_submit(queue.get(), &made, &sealing.message, 0, -1, Told::callback, &told), WC_OK)
      << wc_last_error();
  const JobPointer job(made, wc_job_free);
  int done = 0;
  wc_result result = {};
  EXPECT_EQ(wc_job_wait(&done, &result, job.get(), -1), WC_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(result.written, sealing.text.size());
  EXPECT_TRUE(sealing.is_right());
  EXPECT_EQ(wc_queue_close(queue.get(), 0), WC_OK);
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.status, WC_OK);
  EXPECT_EQ(wc_queue_submit(queue.get(), nullptr, &sealing.message, 0, 0, Told::callback, &told), WC_QUEUE_CLOSED);
  EXPECT_EQ(told.calls, 1);
  wc_queue_statistics now = {};
  EXPECT_EQ(wc_queue_stats(&now, queue.get()), WC_OK);
  EXPECT_EQ(now.messages, 1u);
  EXPECT_EQ(now.waiting, 0u);
  EXPECT_EQ(now.memory_used, 0u);
}

TEST(CQueue, TellsOfATagThatDoesNotMatch) {
  const auto key = make_key("aes-256-gcm", 32);
  const auto queue = make_queue();
  Sealing sealing(key.get(), 1);
  sealing.message.direction = WC_DECRYPT;  // the tag is zeros
  Told told;
  wc_job* made = nullptr;
  ASSERT_EQ(wc_queue_submit(queue.get(), &made, &sealing.message, 0, -1, Told::callback, &told), WC_OK);
  const JobPointer job(made, wc_job_free);
  wc_result result = {};
  EXPECT_EQ(wc_job_wait(nullptr, &result, job.get(), -1), WC_INVALID_TAG);
  EXPECT_EQ(result.status, WC_INVALID_TAG);
  EXPECT_EQ(wc_queue_close(queue.get(), 0), WC_OK);
  EXPECT_EQ(told.status, WC_INVALID_TAG);
}

// A queue that waits an hour for company: messages stay until they are asked for.
TEST(CQueue, CancelsFlushesAndCloses) {
  const auto key = make_key("aes-256-gcm", 32);
  const auto queue = make_queue({0, 0, hour, 0, 0});
  Sealing first(key.get(), 1), second(key.get(), 2), third(key.get(), 3);
  Told told[3];
  wc_job* made[3] = {};
  Sealing* all[] = {&first, &second, &third};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(wc_queue_submit(queue.get(), &made[i], &all[i]->message, 0, -1, Told::callback, &told[i]), WC_OK);
  }
  int done = 1;
  EXPECT_EQ(wc_job_wait(&done, nullptr, made[0], 0), WC_OK);
  EXPECT_EQ(done, 0) << "it waits for company";
  int cancelled = 0;
  EXPECT_EQ(wc_queue_cancel(&cancelled, queue.get(), made[0]), WC_OK);
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(wc_job_wait(&done, nullptr, made[0], -1), WC_CANCELLED);
  EXPECT_EQ(wc_queue_flush(queue.get()), WC_OK);
  EXPECT_EQ(wc_job_wait(&done, nullptr, made[1], -1), WC_OK);
  EXPECT_TRUE(second.is_right());
  EXPECT_EQ(wc_queue_cancel(&cancelled, queue.get(), made[1]), WC_OK);
  EXPECT_EQ(cancelled, 0) << "too late";
  ASSERT_EQ(wc_queue_submit(queue.get(), &made[2], &third.message, 0, -1, Told::callback, &told[2]), WC_OK);
  EXPECT_EQ(wc_queue_close(queue.get(), 1), WC_OK);
  EXPECT_EQ(told[0].calls, 0) << "who cancels knows";
  EXPECT_EQ(told[2].status, WC_CANCELLED) << "but not who is closed upon";
  for (wc_job* job : made) wc_job_free(job);
}

TEST(CQueue, RefusesWhatHasNoRoom) {
  const auto key = make_key("aes-256-gcm", 32);
  const auto queue = make_queue({0, 0, hour, 1000, 0});
  Sealing first(key.get(), 1), second(key.get(), 2);
  // The first takes more than half of the limit; nothing frees it before the flush that memory asks for.
  ASSERT_EQ(wc_queue_submit(queue.get(), nullptr, &first.message, 0, 0, nullptr, nullptr), WC_OK) << wc_last_error();
  const wc_status status = wc_queue_submit(queue.get(), nullptr, &second.message, 0, 0, nullptr, nullptr);
  EXPECT_EQ(status, WC_QUEUE_FULL);
  EXPECT_NE(std::string(wc_last_error()).find("memory_limit"), std::string::npos);
  EXPECT_EQ(wc_queue_submit(queue.get(), nullptr, &second.message, 0, -1, nullptr, nullptr), WC_OK) << wc_last_error();
  Bytes large(2000);
  first.message.in = large.data();
  first.message.in_len = large.size();
  EXPECT_EQ(wc_queue_submit(queue.get(), nullptr, &first.message, 0, -1, nullptr, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_queue_close(queue.get(), 0), WC_OK);
  EXPECT_TRUE(second.is_right());
}

TEST(CQueue, RefusesWhatCannotBeRight) {
  wc_queue* made = nullptr;
  EXPECT_EQ(wc_queue_new(nullptr, nullptr, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_queue_new(&made, "abacus", nullptr), WC_ENGINE_UNAVAILABLE);
  const wc_queue_limits long_delay = {0, 0, hour + 1, 0, 0};
  EXPECT_EQ(wc_queue_new(&made, nullptr, &long_delay), WC_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  const auto key = make_key("aes-256-gcm", 32);
  const auto queue = make_queue();
  Sealing sealing(key.get(), 1);
  EXPECT_EQ(wc_queue_submit(queue.get(), nullptr, nullptr, 0, 0, nullptr, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_queue_submit(nullptr, nullptr, &sealing.message, 0, 0, nullptr, nullptr), WC_INVALID_ARGUMENT);
  sealing.message.memory = WC_MEMORY_DEVICE;
  wc_job* job = nullptr;
  EXPECT_EQ(wc_queue_submit(queue.get(), &job, &sealing.message, 0, 0, nullptr, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(job, nullptr);
  sealing.message.memory = WC_MEMORY_HOST;
  sealing.message.tag_len = 3;
  EXPECT_EQ(wc_queue_submit(queue.get(), &job, &sealing.message, 0, 0, nullptr, nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_job_wait(nullptr, nullptr, nullptr, 0), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_queue_cancel(nullptr, queue.get(), nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_queue_flush(nullptr), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_queue_close(nullptr, 0), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_queue_stats(nullptr, queue.get()), WC_INVALID_ARGUMENT);
  wc_queue_free(nullptr);
  wc_job_free(nullptr);
}

TEST(CQueue, ServesManyThreads) {
  constexpr std::uint64_t threads = 8, each = 200;
  const auto key = make_key("aes-128-gcm", 16);
  const auto queue = make_queue({0, 64, 0, 100'000, 0});
  std::vector<std::unique_ptr<Sealing>> all(threads * each);
  for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = std::make_unique<Sealing>(key.get(), i);
  Told told;
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const auto& message = all[thread * each + i]->message;
        EXPECT_EQ(wc_queue_submit(queue.get(), nullptr, &message, thread, -1, Told::callback, &told), WC_OK);
      }
    });
  }
  for (auto& thread : running) thread.join();
  EXPECT_EQ(wc_queue_close(queue.get(), 0), WC_OK);
  EXPECT_EQ(told.calls, static_cast<int>(all.size()));
  for (const auto& sealing : all) ASSERT_TRUE(sealing->is_right());
}

// Threads that submit, cancel, flush and wait for each other's messages while one closes the queue: each message ends
// once, and one that was done is right. ThreadSanitizer sees this test (docs/testing.md).
TEST(CQueue, BearsAllAtOnce) {
  constexpr std::uint64_t threads = 6, each = 150;
  const auto key = make_key("aes-128-gcm", 16);
  const auto queue = make_queue({0, 32, 50, 20'000, 3});
  std::vector<std::unique_ptr<Sealing>> all(threads * each);
  std::vector<std::atomic<wc_job*>> jobs(all.size());
  for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = std::make_unique<Sealing>(key.get(), i);
  std::atomic<std::uint64_t> handed{0}, done{0}, cancelled{0};
  const auto settle = [&](std::uint64_t i) {
    wc_job* const job = jobs[i].exchange(nullptr);
    if (job == nullptr) return;
    int taken_back = 0;
    if (i % 5 == 0) {
      EXPECT_EQ(wc_queue_cancel(&taken_back, queue.get(), job), WC_OK);
    }
    const wc_status status = wc_job_wait(nullptr, nullptr, job, -1);
    EXPECT_TRUE(status == WC_OK || status == WC_CANCELLED) << status;
    ++(status == WC_OK ? done : cancelled);
    if (status == WC_OK) {
      EXPECT_TRUE(all[i]->is_right());
    }
    wc_job_free(job);
  };
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      for (std::uint64_t i = thread * each; i < (thread + 1) * each; ++i) {
        wc_job* job = nullptr;
        const wc_status status = wc_queue_submit(queue.get(), &job, &all[i]->message, thread, -1, nullptr, nullptr);
        EXPECT_TRUE(status == WC_OK || status == WC_QUEUE_CLOSED) << status;
        if (status != WC_OK) break;
        jobs[i] = job;
        const bool half = ++handed == all.size() / 2;
        if (i % 16 == 0) {
          EXPECT_EQ(wc_queue_flush(queue.get()), WC_OK);
        }
        settle((i + each) % all.size());  // of the next thread
        if (half) {
          EXPECT_EQ(wc_queue_close(queue.get(), 1), WC_OK);
        }
      }
    });
  }
  for (auto& thread : running) thread.join();
  EXPECT_EQ(wc_queue_close(queue.get(), 0), WC_OK);
  for (std::uint64_t i = 0; i < all.size(); ++i) settle(i);
  EXPECT_EQ(done + cancelled, handed);
  EXPECT_GE(handed, all.size() / 2);
  wc_queue_statistics now = {};
  EXPECT_EQ(wc_queue_stats(&now, queue.get()), WC_OK);
  EXPECT_EQ(now.waiting, 0u);
  EXPECT_EQ(now.memory_used, 0u);
}

// A callback hands the next message over, and may not close the queue that it runs on.
TEST(CQueue, CallbacksMaySubmitAndNotClose) {
  struct Chain {
    wc_queue* queue;
    const wc_key* key;
    std::unique_ptr<Sealing> next;
    Told told;
    wc_status closed = WC_OK, submitted = WC_INVALID_ARGUMENT;
    static void callback(void* context, const wc_result*, const char*) {
      auto* chain = static_cast<Chain*>(context);
      chain->closed = wc_queue_close(chain->queue, 0);
      chain->next = std::make_unique<Sealing>(chain->key, 2);
      chain->submitted =
          wc_queue_submit(chain->queue, nullptr, &chain->next->message, 0, -1, Told::callback, &chain->told);
    }
  };
  const auto key = make_key("aes-256-gcm", 32);
  const auto queue = make_queue();
  Chain chain{queue.get(), key.get(), nullptr, {}, WC_OK, WC_INVALID_ARGUMENT};
  Sealing first(key.get(), 1);
  wc_job* made = nullptr;
  ASSERT_EQ(wc_queue_submit(queue.get(), &made, &first.message, 0, -1, Chain::callback, &chain), WC_OK);
  const JobPointer job(made, wc_job_free);
  while (chain.told.calls == 0) std::this_thread::yield();
  EXPECT_EQ(wc_queue_close(queue.get(), 0), WC_OK);
  EXPECT_EQ(chain.closed, WC_INVALID_ARGUMENT);
  EXPECT_EQ(chain.submitted, WC_OK);
  EXPECT_TRUE(chain.next->is_right());
}

}  // namespace
