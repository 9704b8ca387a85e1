// SPDX-License-Identifier: Apache-2.0
// The queue: what it combines and when, whom it serves first, how it ends, and what waits when its memory is full.
#include "queue/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "queue_support.hpp"

namespace warpcipher {
namespace {

using namespace std::chrono_literals;
using namespace test;
using Admission = Queue::Admission;

TEST(Queue, RunsWhatManyThreadsSubmit) {
  constexpr int threads = 8, each = 60;
  std::vector<std::deque<Sample>> samples(threads);
  std::atomic<int> right{0};
  Queue queue("auto", with_delay(100us, 3));
  std::vector<std::thread> submitters;
  for (int t = 0; t < threads; ++t) {
    submitters.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::shared_ptr<Job>> jobs;
      for (int i = 0; i < each; ++i) {
        const Algorithm& algorithm = algorithms()[random() % algorithms().size()];
        samples[static_cast<std::size_t>(t)].emplace_back(random, algorithm, Direction::encrypt,
                                                          test::valid_len(algorithm, random() % 500));
        jobs.push_back(job_of(samples[static_cast<std::size_t>(t)].back()));
        if (queue.submit(jobs.back(), static_cast<std::uint64_t>(t)) != Admission::accepted) return;
      }
      for (int i = 0; i < each; ++i) {
        jobs[static_cast<std::size_t>(i)]->wait();
        right += is_right(samples[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)]) ? 1 : 0;
      }
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  EXPECT_EQ(right, threads * each);
  const QueueStatistics counts = queue.statistics();
  EXPECT_EQ(counts.messages, std::uint64_t{threads * each});
  EXPECT_LE(counts.payloads, counts.messages);
  EXPECT_EQ(counts.memory_used, 0u);
}

TEST(Queue, HasMorePayloadsInFlightWhereTheyMayGoToAGpu) {
  for (const Engine* engine : engines()) {
    const std::string name(engine->name());
    if (!engine->unavailable_reason().empty()) continue;
    EXPECT_EQ(Queue(name).limits().max_in_flight, engine->memory() == Memory::device ? 8u : 4u) << name;
    EXPECT_EQ(Queue(name, with_delay(0us, 3)).limits().max_in_flight, 3u) << name;
  }
  EXPECT_EQ(Queue("auto").limits().max_in_flight, default_in_flight("auto"));
  EXPECT_EQ(Queue(Gate().runner()).limits().max_in_flight, 4u);
}

TEST(Queue, LaunchesByBytesMessagesAgeAndFlush) {
  Texts texts(1);
  const auto run_all = [&](QueueLimits limits, int jobs, bool flush) {
    Queue queue("reference", limits);
    std::vector<std::shared_ptr<Job>> submitted;
    for (int i = 0; i < jobs; ++i) {
      submitted.push_back(texts.next(100));
      EXPECT_EQ(queue.submit(submitted.back(), 0), Admission::accepted);
    }
    if (flush) queue.flush();
    for (const auto& job : submitted) job->wait();
    return queue.statistics().reasons;
  };
  QueueLimits limits = with_delay(hour);
  limits.max_bytes = 400;
  EXPECT_GE(run_all(limits, 8, false)[static_cast<std::size_t>(FlushReason::bytes)], 1u);
  limits = with_delay(hour);
  limits.max_messages = 4;
  EXPECT_EQ(run_all(limits, 8, false)[static_cast<std::size_t>(FlushReason::messages)], 2u);
  EXPECT_GE(run_all(with_delay(1ms), 3, false)[static_cast<std::size_t>(FlushReason::delay)], 1u);
  EXPECT_EQ(run_all(with_delay(hour), 3, true)[static_cast<std::size_t>(FlushReason::flush)], 1u);
}

TEST(Queue, ClosesAfterAllIsDone) {
  Texts texts(2);
  std::vector<std::shared_ptr<Job>> jobs;
  {
    Queue queue("reference", with_delay(hour));
    for (int i = 0; i < 10; ++i) {
      jobs.push_back(texts.next(50));
      ASSERT_EQ(queue.submit(jobs.back(), 0), Admission::accepted);
    }
    queue.close();
    EXPECT_TRUE(queue.ended());
    EXPECT_EQ(payloads_for(queue, FlushReason::close), 1u);
    EXPECT_EQ(queue.submit(texts.next(1), 0), Admission::closed);
    queue.close();
    jobs.push_back(texts.next(50));
  }
  jobs.pop_back();
  for (const auto& job : jobs) EXPECT_EQ(job->state(), Job::State::done);
}

TEST(Queue, TheDestructorDrains) {
  Texts texts(3);
  const auto job = texts.next(1000);
  {
    Queue queue("reference", with_delay(hour));
    ASSERT_EQ(queue.submit(job, 0), Admission::accepted);
  }
  EXPECT_EQ(job->state(), Job::State::done);
  EXPECT_TRUE(is_right(texts.last()));
}

TEST(Queue, CancelsWhatHasNotBeenLaunched) {
  Texts texts(4);
  Gate gate;
  Queue queue(gate.runner(), with_delay(0us));
  const auto running = texts.next(16), waiting = texts.next(16), kept = texts.next(16);
  ASSERT_EQ(queue.submit(running, 0), Admission::accepted);
  gate.wait_for_payloads(1);
  ASSERT_EQ(queue.submit(waiting, 0), Admission::accepted);
  ASSERT_EQ(queue.submit(kept, 0), Admission::accepted);
  EXPECT_FALSE(queue.cancel(*running));
  EXPECT_FALSE(waiting->wait_for(1ms));
  EXPECT_TRUE(queue.cancel(*waiting));
  EXPECT_FALSE(queue.cancel(*waiting));
  waiting->wait();
  gate.open();
  queue.close();
  EXPECT_EQ(running->state(), Job::State::done);
  EXPECT_EQ(waiting->state(), Job::State::cancelled);
  EXPECT_EQ(kept->state(), Job::State::done);
  EXPECT_EQ(queue.statistics().cancelled_jobs, 1u);
  EXPECT_EQ(queue.statistics().messages, 2u);
}

TEST(Queue, ClosingCanCancel) {
  Texts texts(5);
  Gate gate;
  std::atomic<int> told{0};
  Queue queue(gate.runner(), with_delay(0us), [&](auto jobs) { told += static_cast<int>(jobs.size()); });
  const auto running = texts.next(16), waiting = texts.next(16);
  ASSERT_EQ(queue.submit(running, 0), Admission::accepted);
  gate.wait_for_payloads(1);
  ASSERT_EQ(queue.submit(waiting, 0), Admission::accepted);
  std::thread closer([&] { queue.close(true); });
  waiting->wait();
  gate.open();
  closer.join();
  EXPECT_EQ(running->state(), Job::State::done);
  EXPECT_EQ(waiting->state(), Job::State::cancelled);
  EXPECT_EQ(told, 2);
}

TEST(Queue, ClosingCancelsBeforeAFreeWorkerComes) {
  Texts texts(19);
  for (int i = 0; i < 50; ++i) {
    Queue queue("reference", with_delay(hour));
    const auto waiting = texts.next(16);
    ASSERT_EQ(queue.submit(waiting, 0), Admission::accepted);
    queue.close(true);
    EXPECT_EQ(waiting->state(), Job::State::cancelled);
  }
}

TEST(Queue, RefusesOrWaitsWhenItsMemoryIsFull) {
  Texts texts(6);
  Gate gate;
  QueueLimits limits = with_delay(hour);
  const auto first = texts.next(1000), second = texts.next(1000), third = texts.next(1000);
  limits.memory_limit = first->memory_len() * 3 / 2;
  Queue queue(gate.runner(), limits);
  ASSERT_EQ(queue.submit(first, 0), Admission::accepted);
  EXPECT_EQ(queue.submit(second, 0, 0us), Admission::full);
  EXPECT_EQ(queue.submit(second, 0, 2ms), Admission::full);
  EXPECT_EQ(queue.statistics().refused_jobs, 2u);
  std::thread waiter([&] { EXPECT_EQ(queue.submit(second, 1), Admission::accepted); });
  gate.wait_for_payloads(1);  // the one who waits for memory has the first launched
  gate.open();
  waiter.join();
  EXPECT_THROW(static_cast<void>(queue.submit(texts.next(5000), 0)), Error);
  EXPECT_THROW(static_cast<void>(queue.submit(second, 0)), Error);  // a job is submitted once
  queue.flush();
  second->wait();
  EXPECT_GE(payloads_for(queue, FlushReason::memory), 1u);
  EXPECT_LE(queue.statistics().most_memory_used, limits.memory_limit);
  ASSERT_EQ(queue.submit(third, 0), Admission::accepted);
  EXPECT_EQ(queue.submit(texts.next(1000), 1), Admission::accepted);
}

TEST(Queue, ClosingTurnsThoseWhoWaitAway) {
  Texts texts(7);
  Gate gate;
  QueueLimits limits = with_delay(0us);
  const auto first = texts.next(1000), second = texts.next(1000);
  limits.memory_limit = first->memory_len();
  Queue queue(gate.runner(), limits);
  ASSERT_EQ(queue.submit(first, 0), Admission::accepted);
  gate.wait_for_payloads(1);
  std::thread waiter([&] { EXPECT_EQ(queue.submit(second, 0), Admission::closed); });
  std::this_thread::sleep_for(5ms);  // most likely he waits by now; the answer is the same if not
  queue.stop();
  waiter.join();
  gate.open();
  queue.close();
  EXPECT_EQ(first->state(), Job::State::done);
}

TEST(Queue, MemoryGoesToTheOneWhoHoldsLeast) {
  Texts texts(8);
  Gate gate;
  QueueLimits limits = with_delay(0us);
  limits.max_bytes = 1;  // a payload a message
  std::vector<std::shared_ptr<Job>> heavy;
  for (int i = 0; i < 4; ++i) heavy.push_back(texts.next(1000));
  const auto light = texts.next(1000);
  limits.memory_limit = light->memory_len() * 2;
  std::mutex mutex;
  std::vector<std::uint64_t> admitted;
  Queue queue(gate.runner(), limits);
  ASSERT_EQ(queue.submit(heavy[0], 7), Admission::accepted);
  ASSERT_EQ(queue.submit(heavy[1], 7), Admission::accepted);
  gate.wait_for_payloads(1);
  const auto submit = [&](const std::shared_ptr<Job>& job, std::uint64_t submitter) {
    EXPECT_EQ(queue.submit(job, submitter), Admission::accepted);
    const std::lock_guard lock(mutex);
    admitted.push_back(submitter);
  };
  std::thread heavy_waiter([&] { submit(heavy[2], 7); });
  std::this_thread::sleep_for(20ms);
  std::thread light_waiter([&] { submit(light, 8); });
  std::this_thread::sleep_for(20ms);
  gate.open();
  heavy_waiter.join();
  light_waiter.join();
  queue.close();
  // Payloads ran in the order of admission: the light one before the heavy one that had come first.
  const auto payloads = gate.payloads();
  ASSERT_EQ(payloads.size(), 4u);
  EXPECT_EQ(payloads[2][0].out, light->message().out);
}

TEST(Queue, TakesSubmittersInTurn) {
  Texts texts(9);
  Gate gate;
  QueueLimits limits = with_delay(0us);
  limits.max_bytes = 160 << 10;
  Queue queue(gate.runner(), limits);
  ASSERT_EQ(queue.submit(texts.next(1), 0), Admission::accepted);
  gate.wait_for_payloads(1);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(queue.submit(texts.next(16 << 10), 1), Admission::accepted);
  const auto light = texts.next(100);
  ASSERT_EQ(queue.submit(light, 2), Admission::accepted);
  gate.open();
  queue.close();
  const auto payloads = gate.payloads();
  ASSERT_GT(payloads.size(), 3u);
  const auto& second = payloads[1];
  EXPECT_TRUE(
      std::any_of(second.begin(), second.end(), [&](const Message& m) { return m.out == light->message().out; }));
  for (const auto& payload : payloads) {
    std::size_t len = 0;
    for (const Message& m : payload) len += m.in_len;
    EXPECT_LE(len, limits.max_bytes);
  }
}

}  // namespace
}  // namespace warpcipher
