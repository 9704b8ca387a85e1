// SPDX-License-Identifier: Apache-2.0
// The threads of the process: one pool, made on first use, that spreads loops over all cores the process may use.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace warpcipher {

// Cores this process may use: the affinity mask, and no more than the processor time its control groups grant
// (version 2 cpu.max, version 1 cpu.cfs_quota_us), rounded up. At least 1.
std::size_t usable_cores();

class ThreadPool {
 public:
  // The pool of this process. The child of a fork gets a fresh one: threads do not survive a fork.
  static ThreadPool& instance();

  // The threads of instance() end at exit before anything registered with std::atexit until now runs: for a library
  // that cleans up at exit and that those threads call. Without it they end when this library's objects do.
  static void stop_at_exit();

  // A separate pool of `threads` (>= 1) threads, the callers included. Its threads start with the first loop.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Threads that work on one loop, the caller included.
  std::size_t threads() const noexcept;

  // Whether the threads are to end, and somebody waits for it: long work that another thread finishes ends early then.
  bool is_stopping() const noexcept;

  // For a body of Helpers that takes long, between its pieces: whether this thread, of the pool, is to end it early and
  // help another one that has fewer. Then nobody takes the work of this one for done. So two calls at once share the
  // threads, though the first had all.
  bool is_wanted_elsewhere() const noexcept;

  // Calls body(begin, end) for pieces of [0, count), at most `grain` (>= 1) indices each, in any order, on the caller's
  // thread and on free threads of the pool; returns when all are done. The first exception that a body throws
  // is thrown here, and pieces not begun by then are left out. Any thread may call, also from inside a body: the
  // caller works too, so progress never depends on a free thread.
  template <class Body>
  void parallel_for(std::size_t count, std::size_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_loop(count, grain, std::addressof(body), [](const void* context, std::size_t begin, std::size_t end) {
      (*static_cast<Plain*>(const_cast<void*>(context)))(begin, end);
    });
  }

  // Threads of the pool that help one thread, which continues meanwhile: up to `count` free threads at a time call
  // body(), until it returns to one of them. There may be none, so the thread must not depend on them. The destructor
  // waits for those that have started, so the body must be able to end soon. An exception of a body is dropped.
  class Helpers;

  // While one lives, loops that its thread begins run only on that thread: for work that is spread already, and of
  // which the loops are too short to wake another thread for.
  class Alone;

 private:
  struct Impl;
  struct ProcessPool;
  using BodyFunction = void (*)(const void* context, std::size_t begin, std::size_t end);

  void run_loop(std::size_t count, std::size_t grain, const void* context, BodyFunction body);

  std::unique_ptr<Impl> impl_;
};

class ThreadPool::Helpers {
 public:
  template <class Body>
  Helpers(ThreadPool& pool, std::size_t count, const Body& body)
      : Helpers(pool, count, std::addressof(body),
                [](const void* context, std::size_t, std::size_t) { (*static_cast<const Body*>(context))(); }) {}
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

 private:
  Helpers(ThreadPool& pool, std::size_t count, const void* context, BodyFunction body);

  struct State;
  ThreadPool& pool_;
  std::unique_ptr<State> state_;
};

class ThreadPool::Alone {
 public:
  Alone() noexcept;
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  const bool before_;
};

// Signals stay with the application's own threads.

// While it lives, its thread takes no signal. Threads that it starts meanwhile never take one.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace warpcipher
