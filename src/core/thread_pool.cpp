// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/fork.hpp"

namespace warpcipher {
namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// The cores that a quota in microseconds for each period amounts to; none without a limit.
std::optional<std::size_t> cores_of_quota(const std::string& quota, const std::string& period) {
  long long quota_us = 0, period_us = 0;
  if (!(std::istringstream(quota) >> quota_us) || !(std::istringstream(period) >> period_us)) return std::nullopt;
  if (quota_us <= 0 || period_us <= 0) return std::nullopt;
  return static_cast<std::size_t>((quota_us + period_us - 1) / period_us);
}

// The limit of one control group folder, of either version.
std::optional<std::size_t> cores_of_group(const std::string& folder) {
  if (const auto line = first_line(folder + "/cpu.max")) {
    std::string quota, period;
    std::istringstream(*line) >> quota >> period;
    return cores_of_quota(quota, period);  // "max" is not a number: no limit
  }
  const auto quota = first_line(folder + "/cpu.cfs_quota_us");
  const auto period = first_line(folder + "/cpu.cfs_period_us");
  return quota && period ? cores_of_quota(*quota, *period) : std::nullopt;
}

// The tightest limit on the way from this process's control group to the root. A line of /proc/self/cgroup is
// "hierarchy:controllers:path"; version 2 has no controllers named.
std::size_t cores_of_control_groups() {
  std::size_t cores = SIZE_MAX;
  std::ifstream lines("/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version_2 = controllers == ",,";
    if (!version_2 && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string root = version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    std::string path = line.substr(second + 1);
    while (true) {
      if (path == "/") path.clear();
      if (const auto limit = cores_of_group(root + path)) cores = std::min(cores, *limit);
      if (path.empty()) break;
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return cores;
}

}  // namespace

std::size_t usable_cores() {
  std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  // The kernel refuses a mask with fewer bits than it has processors, so the mask grows until it fits.
  for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
    cpu_set_t* const mask = CPU_ALLOC(bits);
    if (mask == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(bits);
    const bool known = sched_getaffinity(0, size, mask) == 0;
    if (known) cores = static_cast<std::size_t>(std::max(1, CPU_COUNT_S(size, mask)));
    CPU_FREE(mask);
    if (known) break;
  }
  return std::min(cores, std::max<std::size_t>(1, cores_of_control_groups()));
}

struct ThreadPool::Impl {
  struct Loop {
    const std::size_t count;
    const std::size_t grain;
    const void* const context;
    const BodyFunction body;
    const bool is_long = false;  // of Helpers: `count` threads at most run the body, once each
    std::atomic<std::size_t> next{0};
    // Guarded by Impl::mutex.
    std::size_t helpers = 0;
    std::size_t leaving = 0;  // of those: see is_wanted_elsewhere()
    std::exception_ptr failure{};
    std::condition_variable idle{};

    bool begun() const { return next.load(std::memory_order_relaxed) >= count; }
    void end() { next.store(count, std::memory_order_relaxed); }
    bool has_room() const { return !begun() && (!is_long || helpers < count); }
  };

  // The long loop that a thread of the pool works on.
  struct Lent {
    Loop* loop = nullptr;
    bool leaves = false;
  };
  static thread_local constinit Lent lent;

  explicit Impl(std::size_t threads) : helper_count(threads - 1) {}

  // A machine that refuses more threads gets a smaller pool: the callers still do all the work.
  void start() {
    const SignalsBlocked blocked;
    try {
      workers.reserve(helper_count);
      while (workers.size() < helper_count) workers.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
  }

  // Takes pieces of a loop until none is left. After an exception, keeps it and ends the loop early.
  void work(Loop& loop) {
    try {
      while (true) {
        const std::size_t begin = loop.next.fetch_add(loop.grain, std::memory_order_relaxed);
        if (begin >= loop.count) break;
        loop.body(loop.context, begin, begin + std::min(loop.grain, loop.count - begin));
      }
    } catch (...) {
      loop.end();
      const std::lock_guard lock(mutex);
      if (!loop.failure) loop.failure = std::current_exception();
    }
  }

  // Runs the body of a long loop, which ends with the work, or because this thread leaves.
  static void lend(Loop& loop) {
    lent = {&loop, false};
    try {
      loop.body(loop.context, 0, 0);
    } catch (...) {  // see Helpers
    }
    if (!lent.leaves) loop.end();
    lent.loop = nullptr;
  }

  // Of the loops that another thread may work on, the one with the fewest; null: there is none.
  Loop* neediest() const {
    Loop* found = nullptr;
    for (Loop* const loop : loops) {
      if (loop->has_room() && (found == nullptr || loop->helpers < found->helpers)) found = loop;
    }
    return found;
  }

  void help() {
    std::unique_lock lock(mutex);
    while (true) {
      Loop* found = nullptr;
      wake.wait(lock, [&] { return stopping || (found = neediest()) != nullptr; });
      if (stopping) return;
      Loop& loop = *found;
      ++loop.helpers;
      lock.unlock();
      if (loop.is_long) {
        lend(loop);
      } else {
        work(loop);
      }
      lock.lock();
      if (loop.is_long && lent.leaves) {
        --loop.leaving;
        --leaving;
      }
      if (--loop.helpers == 0) loop.idle.notify_all();
    }
  }

  bool is_wanted_elsewhere() {
    if (lent.loop == nullptr || long_loops.load(std::memory_order_relaxed) < 2) return false;
    if (lent.leaves) return true;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock) return false;  // asked again soon
    Loop& own = *lent.loop;
    for (const Loop* const loop : loops) {
      const std::size_t expected = loop->helpers + leaving;
      if (!loop->is_long || loop->begun() || expected >= loop->count) continue;
      if (expected + 1 >= own.helpers - own.leaving) continue;
      ++own.leaving;
      ++leaving;
      lent.leaves = true;
      return true;
    }
    return false;
  }

  // Offers a loop to `wanted` threads of the pool.
  void offer(Loop& loop, std::size_t wanted) {
    started.call([&] { start(); });
    {
      const std::lock_guard lock(mutex);
      loops.push_back(&loop);
    }
    if (loop.is_long) ++long_loops;
    if (wanted >= helper_count) {
      wake.notify_all();
    } else {
      for (std::size_t i = 0; i < wanted; ++i) wake.notify_one();
    }
  }

  // Keeps further threads from the loop, and waits until those that work on it have ended.
  void withdraw(Loop& loop) {
    if (loop.is_long) --long_loops;
    std::unique_lock lock(mutex);
    std::erase(loops, &loop);
    loop.idle.wait(lock, [&] { return loop.helpers == 0; });
  }

  const std::size_t helper_count;
  const unsigned process = fork_count();
  ThreadPool* parents = nullptr;  // see ProcessPool
  Once started;
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Loop*> loops;                // in progress
  std::atomic<std::size_t> long_loops{0};  // of those
  std::size_t leaving = 0;                 // threads, of all loops
  std::atomic<bool> stopping{false};       // set under the mutex
};

thread_local constinit ThreadPool::Impl::Lent ThreadPool::Impl::lent;

// The pool of the process, and its treatment at a fork and at exit. After a fork the parent's pool is memory without
// threads, perhaps with a locked mutex: it is neither used nor freed.
struct ThreadPool::ProcessPool {
  std::atomic<ThreadPool*> current{nullptr};

  constexpr ProcessPool() noexcept = default;

  // Runs at exit, or when the shared library is unloaded. The pool object stays: a thread that still runs a loop then
  // finishes it by itself.
  ~ProcessPool() { stop(); }

  void stop() {
    ThreadPool* const pool = current.load();
    if (pool != nullptr && pool->impl_->process == fork_count()) pool->impl_->stop();
  }

  static ProcessPool the;
};

constinit ThreadPool::ProcessPool ThreadPool::ProcessPool::the;

ThreadPool& ThreadPool::instance() {
  ProcessPool& process = ProcessPool::the;
  ThreadPool* found = process.current.load(std::memory_order_acquire);
  if (found != nullptr && found->impl_->process == fork_count()) return *found;
  // Without a lock: of two threads that race, one pool wins; neither has started a thread yet.
  auto* const fresh = new ThreadPool(usable_cores());
  fresh->impl_->parents = found;
  if (process.current.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *found;
}

// If the handler cannot be registered, the destructor ends the threads.
void ThreadPool::stop_at_exit() {
  static_cast<void>(std::atexit([] { ProcessPool::the.stop(); }));
}

ThreadPool::ThreadPool(std::size_t threads) : impl_(std::make_unique<Impl>(threads)) {}
ThreadPool::~ThreadPool() { impl_->stop(); }

bool ThreadPool::is_stopping() const noexcept { return impl_->stopping; }

bool ThreadPool::is_wanted_elsewhere() const noexcept { return impl_->is_wanted_elsewhere(); }

std::size_t ThreadPool::threads() const noexcept { return impl_->helper_count + 1; }

namespace {
thread_local constinit bool is_alone = false;
}

ThreadPool::Alone::Alone() noexcept : before_(std::exchange(is_alone, true)) {}
ThreadPool::Alone::~Alone() { is_alone = before_; }

void ThreadPool::run_loop(std::size_t count, std::size_t grain, const void* context, BodyFunction body) {
  if (count == 0) return;
  Impl& impl = *impl_;
  if (impl.helper_count == 0 || count <= grain || is_alone) {
    for (std::size_t begin = 0; begin < count; begin += std::min(grain, count - begin)) {
      body(context, begin, begin + std::min(grain, count - begin));
    }
    return;
  }
  Impl::Loop loop{count, grain, context, body};
  impl.offer(loop, (count - 1) / grain);  // pieces beyond the one the caller takes
  impl.work(loop);
  impl.withdraw(loop);
  if (loop.failure) std::rethrow_exception(loop.failure);
}

struct ThreadPool::Helpers::State {
  Impl::Loop loop;
};

ThreadPool::Helpers::Helpers(ThreadPool& pool, std::size_t count, const void* context, BodyFunction body)
    : pool_(pool) {
  Impl& impl = *pool.impl_;
  count = std::min(count, impl.helper_count);
  if (count == 0) return;
  state_.reset(new State{{count, 1, context, body, true}});
  impl.offer(state_->loop, count);
}

ThreadPool::Helpers::~Helpers() {
  if (state_ == nullptr) return;
  state_->loop.end();
  pool_.impl_->withdraw(state_->loop);
}

}  // namespace warpcipher
