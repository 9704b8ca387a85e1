// SPDX-License-Identifier: Apache-2.0
// A soak of the queue: clients submit, cancel and wait at random while launches fail, every result is checked, and the
// memory of the process must not grow. Under a second here; WARPCIPHER_TEST_SOAK_SECONDS=600 goes on for longer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <thread>

#include "dispatch/run.hpp"
#include "queue/queue.hpp"
#include "queue_support.hpp"
#include "support.hpp"

namespace warpcipher {
namespace {

using namespace std::chrono_literals;
using test::Sample;
using Admission = Queue::Admission;

// AddressSanitizer keeps what was freed for a while, and finds leaks by itself.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1  // as GCC says it
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
constexpr bool memory_tells_leaks = false;
#else
constexpr bool memory_tells_leaks = true;
#endif

// Bytes of memory that the process holds, as the system counts them.
std::size_t resident_len() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::chrono::milliseconds soak_time() {
  const char* seconds = std::getenv("WARPCIPHER_TEST_SOAK_SECONDS");
  return seconds != nullptr ? std::chrono::milliseconds(1000 * std::atol(seconds)) : 700ms;
}

// One client of the soak: submits, cancels and waits at random, and checks whatever comes back.
class Client {
 public:
  Client(Queue& queue, unsigned id) : queue_(queue), id_(id), random_(id) {}

  void run(std::chrono::steady_clock::time_point end) {
    while (std::chrono::steady_clock::now() < end && wrong_ == 0) {
      submit();
      if (random_() % 8 == 0 && !open_.empty()) queue_.cancel(*open_[random_() % open_.size()].job);
      while (open_.size() > random_() % 40) check_oldest();
    }
    while (!open_.empty()) check_oldest();
  }

  int wrong() const { return wrong_; }
  std::uint64_t done() const { return done_; }

 private:
  struct Open {
    std::shared_ptr<Job> job;
    std::unique_ptr<Sample> sample;
  };

  void submit() {
    Open& open = open_.emplace_back();
    const Algorithm& algorithm = find_algorithm(random_() % 2 == 0 ? "aes-256-gcm" : "aes-128-ctr");
    const std::size_t len = random_() % (random_() % 10 == 0 ? 100000 : 2000);
    open.sample = std::make_unique<Sample>(random_, algorithm, Direction::encrypt, len);
    open.job = job_of(*open.sample);
    const auto timeout = random_() % 4 == 0 ? 0us : Queue::for_ever;
    const Admission admission = queue_.submit(open.job, id_, timeout);
    if (admission == Admission::closed || (admission == Admission::full && timeout != 0us)) ++wrong_;
    if (admission != Admission::accepted) open_.pop_back();
  }

  void check_oldest() {
    const Open& open = open_.front();
    open.job->wait();
    const bool ran = open.job->state() == Job::State::done && open.job->failure().empty();
    const Sample& sample = *open.sample;
    if (ran) {
      // Decrypted again, one by one: the reference engine is too slow here.
      test::Bytes back(sample.out.size()), tag = sample.tag;
      Message m = sample.message;
      m.direction = Direction::decrypt;
      m.in = sample.out.data();
      m.out = back.data();
      m.tag = tag.data();
      Result result;
      warpcipher::run("cpu", {&m, 1}, {&result, 1});
      back.resize(sample.in.size());
      wrong_ += result.status != Status::ok || back != sample.in || !sample.guard_intact();
    } else if (open.job->state() == Job::State::done) {
      wrong_ += open.job->failure() != "planted failure" || open.job->result().status != Status::engine_failure;
    }
    ++done_;
    open_.pop_front();
  }

  Queue& queue_;
  const unsigned id_;
  std::mt19937 random_;
  std::deque<Open> open_;
  int wrong_ = 0;
  std::uint64_t done_ = 0;
};

TEST(QueueSoak, EveryResultIsRight) {
  std::atomic<unsigned> payloads{0};
  QueueLimits limits;
  limits.max_delay = 300us;
  limits.max_in_flight = 3;
  limits.max_bytes = 256 << 10;
  limits.memory_limit = 2 << 20;
  Queue queue(Runner([&](std::span<const Message> messages, std::span<Result> results) {
                if (++payloads % 17 == 0) throw Error(Status::engine_failure, "planted failure");
                run("cpu", messages, results);
              }),
              limits);
  const auto soak_for = [&](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    std::deque<Client> clients;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 6; ++i) clients.emplace_back(queue, i);
    for (Client& client : clients) threads.emplace_back([&, end] { client.run(end); });
    for (std::thread& thread : threads) thread.join();
    std::uint64_t done = 0;
    for (const Client& client : clients) {
      EXPECT_EQ(client.wrong(), 0);
      done += client.done();
    }
    EXPECT_GT(done, 0u);
  };
  soak_for(soak_time() / 2);
  const std::size_t before = resident_len();
  soak_for(soak_time() / 2);
  const QueueStatistics counts = queue.statistics();
  EXPECT_EQ(counts.memory_used, 0u);
  EXPECT_EQ(counts.waiting_jobs, 0u);
  EXPECT_LE(counts.most_memory_used, limits.memory_limit);
  // Allocators keep what they were given; a leak of each message's memory would be far more.
  if (memory_tells_leaks) {
    EXPECT_LT(resident_len(), before + (std::size_t{32} << 20));
  }
  std::printf(
      "%llu messages in %llu payloads, %llu jobs failed, %llu cancelled, %llu refused; memory %zu KiB, then %zu\n",
      static_cast<unsigned long long>(counts.messages), static_cast<unsigned long long>(counts.payloads),
      static_cast<unsigned long long>(counts.failed_jobs), static_cast<unsigned long long>(counts.cancelled_jobs),
      static_cast<unsigned long long>(counts.refused_jobs), before >> 10, resident_len() >> 10);
}

}  // namespace
}  // namespace warpcipher
