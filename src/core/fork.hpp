// SPDX-License-Identifier: Apache-2.0
// Makes the library work in the child of a fork. The child has one thread, the one that forked, and the memory of that
// moment: a lock that another thread held stays locked, and an object that another thread was making stays unfinished.
// So
//   - nothing is made under the compiler's guard of a static variable: FirstUse and Once know which process makes;
//   - locks that the child may want are taken inside a NotAtFork, for whose end a fork waits;
//   - objects with their own threads (ThreadPool, Queue, Batch) know its process by fork_count().
// Only src/core/fork.cpp registers handlers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace warpcipher {

// The number of forks between the process that loaded the library and this one: it distinguishes a child from its
// parent.
unsigned fork_count() noexcept;

// A fork by another thread waits for the end of this scope, at most for a second. For short work that holds a lock, our
// own or one inside libcrypto or the loader. The work must never wait for a thread, a device or Python's GIL, which the
// forking thread may hold. The limit exists because the work may wait, without our knowledge, for a lock that the
// forking thread has taken in another fork handler, such as an allocator's. Scopes may be nested.
class NotAtFork {
 public:
  NotAtFork() noexcept;
  ~NotAtFork();
  NotAtFork(const NotAtFork&) = delete;
  NotAtFork& operator=(const NotAtFork&) = delete;
};

// Runs something once, as std::call_once: other threads wait, and after an exception the next thread runs it. If
// another thread was running it at a fork, the child runs it again, over that thread's leftovers.
class Once {
 public:
  constexpr Once() noexcept = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  template <class Body>
  void call(Body&& body) {
    if (state_.load(std::memory_order_acquire) == done || !begin()) return;
    try {
      body();
    } catch (...) {
      end(fresh);
      throw;
    }
    end(done);
  }

 private:
  static constexpr std::uint32_t fresh = 0, done = 1;  // from 2 on: being run, and in which process

  bool begin() noexcept;  // false: done by another thread
  void end(std::uint32_t state) noexcept;

  std::atomic<std::uint32_t> state_{fresh};
};

// A value that is made on first use and never destroyed, for static variables: threads may use it while the process
// ends. If a child finds a half-made value, it makes the value again in the same place.
template <class T>
class FirstUse {
 public:
  constexpr FirstUse() noexcept = default;

  // make() -> T, which need not be movable.
  template <class Make>
  T& get(Make&& make) {
    once_.call([&] { ::new (static_cast<void*>(room_)) T(make()); });
    return *std::launder(reinterpret_cast<T*>(room_));
  }
  T& get() {
    once_.call([&] { ::new (static_cast<void*>(room_)) T(); });
    return *std::launder(reinterpret_cast<T*>(room_));
  }

 private:
  Once once_;
  alignas(T) std::byte room_[sizeof(T)]{};
};

}  // namespace warpcipher
