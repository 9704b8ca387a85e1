// SPDX-License-Identifier: Apache-2.0
// The thread pool: every index once, from many callers, through exceptions, forks and exits.
#include "core/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace warpcipher {
namespace {

// True when each index of a loop is visited once.
bool visits_all(ThreadPool& pool, std::size_t count, std::size_t grain) {
  std::vector<std::atomic<int>> visits(count);
  std::atomic<bool> grains_fit{true};
  pool.parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
    if (begin >= end || end - begin > grain) grains_fit = false;
    for (std::size_t i = begin; i < end; ++i) ++visits[i];
  });
  for (const auto& visit : visits) {
    if (visit != 1) return false;
  }
  return grains_fit;
}

TEST(ThreadPool, VisitsEveryIndexOnce) {
  for (const std::size_t threads : {1u, 2u, 7u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::size_t count : {0u, 1u, 2u, 100u, 4097u}) {
      for (const std::size_t grain : {1u, 3u, 5000u}) EXPECT_TRUE(visits_all(pool, count, grain));
    }
  }
}

// Two bodies that wait for each other end only if two threads run them.
TEST(ThreadPool, RunsBodiesAtTheSameTime) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> arrived{0};
  pool.parallel_for(2, 1, [&](std::size_t, std::size_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 2u);
}

// Helpers work while the thread that asked for them goes on, and are gone when it no longer wants them.
TEST(ThreadPool, HelpsAThread) {
  for (const std::size_t threads : {1u, 2u, 3u}) {
    ThreadPool pool(threads);
    for (const std::size_t wanted : {0u, 1u, 5u}) {
      std::atomic<std::size_t> arrived{0}, left{0};
      const std::size_t expected = std::min(wanted, threads - 1);
      std::atomic<bool> over{false};
      const auto body = [&] {
        ++arrived;
        while (!over) std::this_thread::yield();
        ++left;
      };
      {
        const ThreadPool::Helpers helpers(pool, wanted, body);
        while (arrived < expected) std::this_thread::yield();
        EXPECT_TRUE(visits_all(pool, 100, 1));  // loops go on meanwhile
        over = true;
      }
      EXPECT_EQ(left, arrived);
      EXPECT_GE(arrived, expected);
    }
  }
}

// A call that comes while another has all threads gets half of them, and the other gets them back.
TEST(ThreadPool, SharesHelpersAmongCalls) {
  ThreadPool pool(8);
  struct Call {
    std::atomic<std::size_t> helpers{0};
    std::atomic<bool> over{false};
  } first, second;
  const auto body_of = [&pool](Call& call) {
    return [&pool, &call] {
      ++call.helpers;
      while (!call.over && !pool.is_wanted_elsewhere()) std::this_thread::yield();
      --call.helpers;
    };
  };
  const auto first_body = body_of(first), second_body = body_of(second);
  EXPECT_FALSE(pool.is_wanted_elsewhere());  // not a thread of the pool
  const auto await = [](const Call& call, std::size_t helpers) {
    while (call.helpers != helpers) std::this_thread::yield();
  };
  {
    const ThreadPool::Helpers helpers(pool, 7, first_body);
    await(first, 7);
    {
      const ThreadPool::Helpers others(pool, 7, second_body);
      await(second, 3);
      await(first, 4);
      EXPECT_TRUE(visits_all(pool, 100, 1));
      second.over = true;
    }
    await(first, 7);
    {
      second.over = false;
      const ThreadPool::Helpers one(pool, 1, second_body);
      await(second, 1);
      await(first, 6);
      second.over = true;
    }
    first.over = true;
  }
  EXPECT_EQ(first.helpers + second.helpers, 0u);
}

TEST(ThreadPool, ServesSeveralCallersAndNestedLoops) {
  ThreadPool pool(4);
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) right += visits_all(pool, 333, 2) ? 1 : 0;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 300);

  std::atomic<int> inner{0};
  pool.parallel_for(8, 1, [&](std::size_t, std::size_t) { inner += visits_all(pool, 100, 1) ? 1 : 0; });
  EXPECT_EQ(inner, 8);
}

TEST(ThreadPool, RunsLoopsOfAThreadThatIsAloneThere) {
  ThreadPool pool(4);
  const auto here = std::this_thread::get_id();
  const auto run = [&] {
    std::atomic<bool> is_here{true};
    pool.parallel_for(100, 1, [&](std::size_t, std::size_t) {
      if (std::this_thread::get_id() != here) is_here = false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    return is_here.load();
  };
  {
    const ThreadPool::Alone alone;
    { const ThreadPool::Alone still; }
    EXPECT_TRUE(run());
    EXPECT_TRUE(visits_all(pool, 100, 3));
  }
  EXPECT_FALSE(run());
}

TEST(ThreadPool, CarriesAnExceptionToTheCaller) {
  ThreadPool pool(3);
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> begun{0};
    EXPECT_THROW(pool.parallel_for(1000, 1,
                                   [&](std::size_t begin, std::size_t) {
                                     ++begun;
                                     if (begin == 5) throw std::runtime_error("five");
                                     std::this_thread::sleep_for(std::chrono::microseconds(20));
                                   }),
                 std::runtime_error);
    EXPECT_LT(begun, 1000);
    EXPECT_TRUE(visits_all(pool, 100, 1));
  }
}

int exit_status_of_child(void (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs ends with a signal
    body();
    std::_Exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(ThreadPool, WorksInTheChildOfAFork) {
  ThreadPool* const parents = &ThreadPool::instance();
  ASSERT_TRUE(visits_all(*parents, 1000, 1));
  static ThreadPool* before;
  before = parents;
  const int status = exit_status_of_child([] {
    ThreadPool& pool = ThreadPool::instance();
    std::_Exit(&pool != before && visits_all(pool, 1000, 1) ? 0 : 2);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(&ThreadPool::instance(), parents);
  EXPECT_TRUE(visits_all(*parents, 1000, 1));
}

// exit() runs the destructors of statics while the pool's threads wait for work.
TEST(ThreadPool, LetsTheProcessExit) {
  const int status = exit_status_of_child([] {
    if (!visits_all(ThreadPool::instance(), 1000, 1)) std::_Exit(2);
    std::atexit([] {});
    std::exit(0);
  });
  EXPECT_EQ(status, 0);
}

// A library that cleans up at exit must not outlive what the pool's threads keep of it.
TEST(ThreadPool, ThreadsEndBeforeWhatWasRegisteredAtExitFirst) {
  if (usable_cores() < 2) GTEST_SKIP() << "the pool has no thread of its own on one core";
  static std::atomic<bool> begun{false}, ended{false};
  const int status = exit_status_of_child([] {
    struct AtThreadsEnd {
      ~AtThreadsEnd() { ended = true; }
    };
    std::atexit([] { std::_Exit(ended ? 0 : 3); });
    ThreadPool::stop_at_exit();
    const std::thread::id caller = std::this_thread::get_id();
    ThreadPool::instance().parallel_for(2, 1, [&](std::size_t, std::size_t) {
      if (std::this_thread::get_id() != caller) {
        thread_local AtThreadsEnd at_threads_end;
        static_cast<void>(&at_threads_end);
        begun = true;
      }
      while (!begun) std::this_thread::yield();
    });
    std::exit(2);
  });
  EXPECT_EQ(status, 0);
}

TEST(ThreadPool, CountsAtLeastOneCore) {
  EXPECT_GE(usable_cores(), 1u);
  EXPECT_LE(usable_cores(), std::max(1u, std::thread::hardware_concurrency()));
  EXPECT_EQ(ThreadPool::instance().threads(), usable_cores());
}

}  // namespace
}  // namespace warpcipher
