// SPDX-License-Identifier: Apache-2.0
// The queue when something goes wrong: what it refuses, what a failure leaves untouched, and uses that are not allowed
// or out of the ordinary: messages in each other's way, its listener, a fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "flow/host_transfer.hpp"
#include "host_device_engine.hpp"
#include "queue/queue.hpp"
#include "queue_support.hpp"

namespace warpcipher {
namespace {

using namespace std::chrono_literals;
using namespace test;
using Admission = Queue::Admission;

TEST(Queue, AFailedLaunchFailsItsOwnMessages) {
  std::mt19937 random(10);
  test::HostDeviceEngine engine;
  std::mutex mutex;
  QueueLimits limits = with_delay(hour);
  limits.max_messages = 4;
  engine.fail_on_run = 2;
  Queue queue(Runner([&](std::span<const Message> messages, std::span<Result> results) {
                const std::lock_guard lock(mutex);
                std::vector<Status> statuses(messages.size(), Status::ok);
                run_through_device(engine, messages, statuses);
                for (std::size_t i = 0; i < results.size(); ++i) results[i] = {statuses[i], messages[i].output_len()};
              }),
              limits);
  std::deque<Sample> samples;
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 12; ++i) {
    samples.emplace_back(random, find_algorithm("aes-256-gcm"), Direction::encrypt, 100);
    jobs.push_back(job_of(samples.back()));
    ASSERT_EQ(queue.submit(jobs.back(), 0), Admission::accepted);
    if (i % 4 == 3) jobs.back()->wait();
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const bool failed = i / 4 == 1;
    EXPECT_EQ(jobs[i]->result().status, failed ? Status::engine_failure : Status::ok);
    EXPECT_EQ(jobs[i]->failure(), failed ? "planted failure" : "");
    if (failed) {
      EXPECT_TRUE(std::all_of(samples[i].out.begin(), samples[i].out.begin() + 100, [](auto b) { return b == 0; }));
    } else {
      EXPECT_TRUE(is_right(samples[i]));
    }
  }
  EXPECT_EQ(queue.statistics().failed_jobs, 4u);
  queue.close();  // until then a worker may keep staging memory, and wipes it
  EXPECT_TRUE(engine.balanced());
}

TEST(Queue, TurnsEveryExceptionIntoAResult) {
  Texts texts(11);
  int call = 0;
  Queue queue(Runner([&](std::span<const Message>, std::span<Result>) {
                if (++call == 1) throw std::bad_alloc();
                throw std::runtime_error("odd");
              }),
              with_delay(0us));
  const auto first = texts.next(1), second = texts.next(1);
  ASSERT_EQ(queue.submit(first, 0), Admission::accepted);
  first->wait();
  ASSERT_EQ(queue.submit(second, 0), Admission::accepted);
  second->wait();
  EXPECT_EQ(first->result().status, Status::out_of_memory);
  EXPECT_EQ(second->result().status, Status::engine_failure);
  EXPECT_EQ(second->failure(), "odd");
}

TEST(Queue, TellsABadTagByItsOwnMessage) {
  std::mt19937 random(12);
  const Algorithm& gcm = find_algorithm("aes-128-gcm");
  Sample forged(random, gcm, Direction::decrypt, 64), other(random, gcm, Direction::encrypt, 64);
  const auto job = job_of(forged), fine = job_of(other);
  Queue queue("auto", with_delay(hour));
  ASSERT_EQ(queue.submit(job, 0), Admission::accepted);
  ASSERT_EQ(queue.submit(fine, 0), Admission::accepted);
  queue.close();
  EXPECT_EQ(job->result().status, Status::invalid_tag);
  EXPECT_EQ(fine->result().status, Status::ok);
  EXPECT_TRUE(is_right(other));
  EXPECT_TRUE(job->failure().empty());
  EXPECT_EQ(queue.statistics().payloads, 1u);
}

TEST(Queue, RefusesTheLaterOfTwoEqualNonces) {
  std::mt19937 random(13);
  const Algorithm& gcm = find_algorithm("aes-128-gcm");
  Sample first(random, gcm, Direction::encrypt, 64), second(random, gcm, Direction::encrypt, 64),
      other(random, gcm, Direction::encrypt, 64);
  second.message.key = first.message.key;
  second.message.iv = first.message.iv;
  Queue queue("cpu", with_delay(hour));
  const auto a = job_of(first), b = job_of(second), c = job_of(other);
  // Submitter 5 comes first in turn, with `c`; then `a` of submitter 6 is older than `b`.
  ASSERT_EQ(queue.submit(c, 5), Admission::accepted);
  ASSERT_EQ(queue.submit(a, 6), Admission::accepted);
  ASSERT_EQ(queue.submit(b, 5), Admission::accepted);
  queue.close();
  EXPECT_EQ(a->result().status, Status::ok);
  EXPECT_EQ(b->result().status, Status::invalid_argument);
  EXPECT_NE(b->failure().find("nonce"), std::string::npos);
  EXPECT_EQ(c->result().status, Status::ok);
  EXPECT_EQ(second.out[0], Sample::guard_byte);
  EXPECT_TRUE(is_right(first) && is_right(other));
}

TEST(Queue, RunsMessagesInEachOthersWayApart) {
  std::mt19937 random(14);
  const Algorithm& ctr = find_algorithm("aes-128-ctr");
  std::deque<Sample> samples;
  for (int i = 0; i < 7; ++i) samples.emplace_back(random, ctr, Direction::encrypt, 64);
  samples[3].message.in = samples[2].out.data();  // what 2 writes
  Queue queue("cpu", with_delay(hour));
  std::vector<std::shared_ptr<Job>> jobs;
  for (const Sample& sample : samples) {
    jobs.push_back(job_of(sample));
    ASSERT_EQ(queue.submit(jobs.back(), 0), Admission::accepted);
  }
  queue.close();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i]->result().status, Status::ok);
    EXPECT_TRUE(is_right(samples[i]));
  }
}

TEST(Queue, RefusesWhatCannotBeRight) {
  std::mt19937 random(15);
  Sample sample(random, find_algorithm("aes-128-ctr"), Direction::encrypt, 64);
  sample.message.iv_len = 15;
  EXPECT_THROW(job_of(sample), Error);
  sample.message.iv_len = 16;
  sample.message.memory = Memory::device;
  EXPECT_THROW(job_of(sample), Error);
  EXPECT_THROW(Queue("warp"), Error);
  for (std::size_t QueueLimits::*limit :
       {&QueueLimits::max_bytes, &QueueLimits::max_messages, &QueueLimits::memory_limit}) {
    QueueLimits limits;
    limits.*limit = 0;
    EXPECT_THROW(Queue("reference", limits), Error);
  }
  EXPECT_THROW(Queue("reference", with_delay(-1us)), Error);
}

TEST(Queue, TheListenerMaySubmitButNeitherWaitNorClose) {
  Texts texts(16);
  std::atomic<int> told{0};
  std::atomic<bool> full{false}, refused{false};
  QueueLimits limits = with_delay(0us);
  const auto first = texts.next(100), second = texts.next(100), third = texts.next(100);
  limits.memory_limit = first->memory_len();
  std::unique_ptr<Queue> queue;
  std::mutex made;
  std::unique_lock lock(made);
  queue = std::make_unique<Queue>("reference", limits, [&](auto) {
    const std::lock_guard wait_for_the_pointer(made);
    if (++told > 1) return;
    static_cast<void>(queue->submit(second, 0));
    full = queue->submit(third, 0) == Admission::full || second->state() == Job::State::done;
    try {
      queue->close();
    } catch (const Error&) {
      refused = true;
    }
  });
  lock.unlock();
  ASSERT_EQ(queue->submit(first, 0), Admission::accepted);
  first->wait();
  while (told < 2) std::this_thread::yield();
  queue->close();
  EXPECT_TRUE(full && refused);
  EXPECT_EQ(second->state(), Job::State::done);
}

TEST(Queue, MayEndInsideItsListener) {
  Texts texts(17);
  std::atomic<bool> gone{false};
  std::mutex made;
  std::unique_lock lock(made);
  std::unique_ptr<Queue> queue;
  queue = std::make_unique<Queue>("reference", with_delay(0us), [&](auto) {
    const std::lock_guard wait_for_the_pointer(made);
    queue.reset();
    gone = true;
  });
  const auto job = texts.next(10);
  ASSERT_EQ(queue->submit(job, 0), Admission::accepted);
  lock.unlock();
  while (!gone) std::this_thread::yield();
  EXPECT_EQ(job->state(), Job::State::done);
}

TEST(Queue, TheChildOfAForkIsTold) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer cannot follow threads that start in the child of a fork";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a worker may hold AddressSanitizer's allocator, which then stays locked in the child of a fork";
#endif
  Texts texts(18);
  Queue queue("reference", with_delay(hour));
  const auto left = texts.next(10);
  ASSERT_EQ(queue.submit(left, 0), Admission::accepted);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int wrong = 0;
    const auto refused = [&](auto&& action) {
      try {
        action();
        ++wrong;
      } catch (const Error&) {
      }
    };
    refused([&] { static_cast<void>(queue.submit(texts.next(10), 0)); });
    refused([&] { left->wait(); });
    queue.close();
    if (!queue.ended() || queue.cancel(*left)) ++wrong;
    {
      Queue own("reference", with_delay(0us));
      const auto job = texts.next(10);
      if (own.submit(job, 0) != Admission::accepted) ++wrong;
      job->wait();
    }
    queue.~Queue();
    std::_Exit(wrong == 0 ? 0 : 2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  queue.close();
  EXPECT_EQ(left->state(), Job::State::done);
}

}  // namespace
}  // namespace warpcipher
