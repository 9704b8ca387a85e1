// SPDX-License-Identifier: Apache-2.0
// The queue: what it combines and when, whom it serves first, what it refuses, and what a failure leaves untouched.
#include "pipeline/queue.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/reference/engine.hpp"
#include "host_device_engine.hpp"
#include "pipeline/run.hpp"
#include "pipeline/staging.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using namespace std::chrono_literals;
using test::Sample;
using Admission = Queue::Admission;

constexpr auto hour = std::chrono::microseconds(1h);

// Runs messages with the reference engine, but only while open: tests then know what is waiting and what is running.
class Gate {
 public:
  Runner runner() {
    return [this](std::span<const Message> messages, std::span<Result> results) {
      {
        std::unique_lock lock(mutex_);
        payloads_.emplace_back(messages.begin(), messages.end());
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_; });
      }
      run("reference", messages, results);
    };
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for_payloads(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return payloads_.size() >= count; });
  }
  std::vector<std::vector<Message>> payloads() {
    const std::lock_guard lock(mutex_);
    return payloads_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::vector<std::vector<Message>> payloads_;
};

std::shared_ptr<Job> job_of(const Sample& sample) {
  return std::make_shared<Job>(std::vector<Message>{sample.message});
}

// A message of aes-128-ctr, kept by the caller, as a job.
class Texts {
 public:
  explicit Texts(unsigned seed) : random_(seed) {}
  std::shared_ptr<Job> next(std::size_t len) {
    return job_of(samples_.emplace_back(random_, find_algorithm("aes-128-ctr"), Direction::encrypt, len));
  }
  Sample& last() { return samples_.back(); }

 private:
  std::mt19937 random_;
  std::deque<Sample> samples_;
};

bool is_right(const Sample& sample) {
  test::Bytes out(sample.out.size()), tag(sample.tag);
  Message m = sample.message;
  m.out = out.data();
  m.tag = tag.data();
  Result result;
  run("reference", {&m, 1}, {&result, 1});
  return result.status == Status::ok && sample.tag == tag &&
         std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(m.output_len()), sample.out.begin()) &&
         sample.guard_intact();
}

std::uint64_t payloads_for(const Queue& queue, FlushReason reason) {
  return queue.statistics().reasons[static_cast<std::size_t>(reason)];
}

QueueLimits with_delay(std::chrono::microseconds delay, std::size_t max_in_flight = 1) {
  QueueLimits limits;
  limits.max_delay = delay;
  limits.max_in_flight = max_in_flight;
  return limits;
}

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
  EXPECT_EQ(payloads[2][0].out, light->messages()[0].out);
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
      std::any_of(second.begin(), second.end(), [&](const Message& m) { return m.out == light->messages()[0].out; }));
  for (const auto& payload : payloads) {
    std::size_t len = 0;
    for (const Message& m : payload) len += m.in_len;
    EXPECT_LE(len, limits.max_bytes);
  }
}

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
    EXPECT_EQ(jobs[i]->results()[0].status, failed ? Status::engine_failure : Status::ok);
    EXPECT_EQ(jobs[i]->failure(), failed ? "planted failure" : "");
    if (failed) {
      EXPECT_TRUE(std::all_of(samples[i].out.begin(), samples[i].out.begin() + 100, [](auto b) { return b == 0; }));
    } else {
      EXPECT_TRUE(is_right(samples[i]));
    }
  }
  EXPECT_EQ(queue.statistics().failed_jobs, 4u);
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
  EXPECT_EQ(first->results()[0].status, Status::out_of_memory);
  EXPECT_EQ(second->results()[0].status, Status::engine_failure);
  EXPECT_EQ(second->failure(), "odd");
}

TEST(Queue, TellsABadTagByItsOwnMessage) {
  std::mt19937 random(12);
  const Algorithm& gcm = find_algorithm("aes-128-gcm");
  Sample forged(random, gcm, Direction::decrypt, 64), other(random, gcm, Direction::encrypt, 64);
  const auto job = std::make_shared<Job>(std::vector<Message>{forged.message, other.message});
  Queue queue("auto", with_delay(0us));
  ASSERT_EQ(queue.submit(job, 0), Admission::accepted);
  job->wait();
  EXPECT_EQ(job->results()[0].status, Status::invalid_tag);
  EXPECT_EQ(job->results()[1].status, Status::ok);
  EXPECT_TRUE(is_right(other));
  EXPECT_TRUE(job->failure().empty());
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
  EXPECT_EQ(a->results()[0].status, Status::ok);
  EXPECT_EQ(b->results()[0].status, Status::invalid_argument);
  EXPECT_NE(b->failure().find("nonce"), std::string::npos);
  EXPECT_EQ(c->results()[0].status, Status::ok);
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
    EXPECT_EQ(jobs[i]->results()[0].status, Status::ok);
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
       {&QueueLimits::max_bytes, &QueueLimits::max_messages, &QueueLimits::memory_limit, &QueueLimits::max_in_flight}) {
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
