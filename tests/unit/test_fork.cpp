// SPDX-License-Identifier: Apache-2.0
// Forks while another thread uses the library, for the first time above all: the child must not wait for what that
// thread held.
#include "core/fork.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dispatch/batch.hpp"
#include "dispatch/run.hpp"
#include "engine/cpu/hmac.hpp"
#include "search/searcher.hpp"
#include "support.hpp"
#include "tuning/tuning.hpp"

namespace warpcipher {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool forks_beside_threads = false;  // ThreadSanitizer cannot follow threads that start in the child of a fork
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool forks_beside_threads = false;  // the other thread may hold AddressSanitizer's allocator
#else
constexpr bool forks_beside_threads = true;
#endif
constexpr const char* why_skipped = "this sanitizer's runtime does not bear forks next to threads";

// Runs `body` in a child, which ends with a signal if it hangs.
template <class Body>
pid_t start_child(Body&& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(30);
  int code = 3;
  try {
    code = body() ? 0 : 1;
  } catch (...) {
  }
  std::_Exit(code);
}

int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

template <class Body>
int status_of_child(Body&& body) {
  return status_of(start_child(body));
}

TEST(Once, RunsOnceAndAgainAfterAnException) {
  Once once;
  int runs = 0;
  EXPECT_THROW(once.call([&] {
    ++runs;
    throw std::runtime_error("no");
  }),
               std::runtime_error);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      once.call([&] { ++runs; });
      EXPECT_EQ(runs, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs, 2);
}

TEST(Once, TheChildRunsWhatAnotherThreadWasRunning) {
  if (!forks_beside_threads) GTEST_SKIP() << why_skipped;
  Once once;
  std::latch begun(1), goes_on(1);
  int runs = 0;
  std::thread other([&] {
    once.call([&] {
      begun.count_down();
      goes_on.wait();
      ++runs;
    });
  });
  begun.wait();
  EXPECT_EQ(status_of_child([&] {
              once.call([&] { runs = 10; });
              once.call([&] { runs = 20; });
              return runs == 10;
            }),
            0);
  goes_on.count_down();
  once.call([&] { runs = 30; });
  other.join();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(status_of_child([&] {
              once.call([&] { runs = 10; });
              return runs == 1;
            }),
            0);
}

TEST(FirstUse, TheChildMakesAnewWhatWasHalfMade) {
  if (!forks_beside_threads) GTEST_SKIP() << why_skipped;
  FirstUse<std::string> text;
  std::latch begun(1), goes_on(1);
  std::thread other([&] {
    text.get([&] {
      begun.count_down();
      goes_on.wait();
      return std::string("the parent's, too long for a short string");
    });
  });
  begun.wait();
  EXPECT_EQ(status_of_child([&] { return text.get([] { return std::string("the child's"); }) == "the child's"; }), 0);
  goes_on.count_down();
  other.join();
  EXPECT_EQ(text.get().substr(0, 12), "the parent's");
  text.get().~basic_string();
}

// A lock that is only held inside a NotAtFork is free in every child.
TEST(NotAtFork, AForkWaitsForItsEnd) {
  if (!forks_beside_threads) GTEST_SKIP() << why_skipped;
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::atomic<int> turns{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const NotAtFork scope;
        const NotAtFork inner;
        const std::lock_guard lock(mutex);
        ++turns;
      }
    });
  }
  while (turns < 100) std::this_thread::yield();
  std::vector<pid_t> children;
  for (int i = 0; i < 100; ++i) {
    children.push_back(start_child([&] {
      const NotAtFork scope;
      return mutex.try_lock();
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(NotAtFork, TheThreadThatForksMayBeInside) {
  const NotAtFork scope;
  EXPECT_EQ(status_of_child([] {
              const NotAtFork inner;
              return true;
            }),
            0);
}

TEST(ForkCount, TellsAChildFromItsParent) {
  const unsigned here = fork_count();
  EXPECT_EQ(status_of_child([&] { return fork_count() == here + 1; }), 0);
  EXPECT_EQ(fork_count(), here);
}

TEST(Batch, TheChildOfAForkIsTold) {
  std::mt19937 random(1);
  test::Sample sample(random, find_algorithm("aes-128-gcm"), Direction::encrypt, 100);
  Batch done("cpu"), open("cpu");
  done.add(sample.message);
  open.add(sample.message);
  done.start(nullptr);
  EXPECT_EQ(done.wait(), Status::ok);
  EXPECT_EQ(status_of_child([&] {
              int refused = 0;
              const auto try_one = [&](auto&& action) {
                try {
                  action();
                } catch (const Error& error) {
                  refused += error.status() == Status::engine_failure ? 1 : 0;
                }
              };
              try_one([&] { open.add(sample.message); });
              try_one([&] { open.start(nullptr); });
              try_one([&] { open.wait(); });
              open.~Batch();
              return refused == 3 && done.wait() == Status::ok && done.result(0).written == 100;
            }),
            0);
}

// A batch that still runs, as far as the child can know: its thread is only in the parent.
TEST(Batch, TheChildOfAForkDoesNotWaitForTheParentsThread) {
  if (!forks_beside_threads) GTEST_SKIP() << why_skipped;
  std::mt19937 random(1);
  test::Sample sample(random, find_algorithm("aes-128-cbc"), Direction::encrypt, std::size_t{1} << 20);
  for (int i = 0; i < 3; ++i) {
    Batch batch("reference");
    batch.add(sample.message);
    batch.start(nullptr);
    EXPECT_EQ(status_of_child([&] {
                const bool is_done = batch.is_done();
                bool refused = false;
                try {
                  batch.wait();
                } catch (const Error&) {
                  refused = true;
                }
                batch.~Batch();
                return is_done != refused;
              }),
              0);
    batch.wait();
  }
}

// --- the whole library ---

bool run_sample(std::string_view engine, std::string_view algorithm, Direction direction, std::size_t len) {
  std::mt19937 random(7);
  test::Sample first(random, find_algorithm(algorithm), direction, len);
  test::Sample second(random, find_algorithm(algorithm), direction, len);
  const Message messages[2] = {first.message, second.message};
  Result results[2];
  run(engine, messages, results);
  const Status expected =
      direction == Direction::decrypt && first.message.tag_len != 0 ? Status::invalid_tag : Status::ok;
  return results[0].status == expected && results[1].status == expected;
}

// Made once: the lists, tuning, self-tests, thread pool, libcrypto and its ciphers, and what of two is faster.
bool use_everything() {
  const std::vector<std::uint8_t> key(32, 1);
  return run_sample("auto", "aes-128-gcm", Direction::encrypt, 40000) &&
         run_sample("auto", "aes-256-gcm", Direction::decrypt, std::size_t{1} << 20) &&
         run_sample("cpu", "aes-128-xts", Direction::encrypt, 4096) &&
         run_sample("cpu", "des-ecb", Direction::encrypt, 4096) &&
         run_sample("reference", "des-ede3-cbc", Direction::encrypt, 64) && current_tuning() != nullptr &&
         hkdf("sha256", key, {}, {}, 16).size() == 16 && !search::searchers().empty();
}

// Forks until the other thread has done everything once.
int fork_during_first_use() {
  constexpr std::size_t most_children = 24;
  std::atomic<bool> begun{false}, ended{false};
  std::thread other([&] {
    begun = true;
    if (!use_everything()) std::_Exit(4);
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  std::vector<pid_t> children;
  while (!ended && children.size() < most_children) children.push_back(start_child(&use_everything));
  int failed = 0;
  for (const pid_t child : children) failed += status_of(child) != 0 ? 1 : 0;
  other.join();
  return failed == 0 ? 0 : 5;
}

TEST(Fork, MayHappenWhileAnotherThreadIsInItsFirstUse) {
  if (!forks_beside_threads) GTEST_SKIP() << why_skipped;
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, in which nothing has been used
  for (int i = 0; i < 2; ++i) EXPECT_EXIT(std::_Exit(fork_during_first_use()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace warpcipher
