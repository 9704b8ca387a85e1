// SPDX-License-Identifier: Apache-2.0
#include "core/fork.hpp"

#include <pthread.h>

#include <array>
#include <chrono>
#include <thread>

namespace warpcipher {
namespace {

std::atomic<unsigned> forks{0};

// Counts threads inside a NotAtFork, in a cache line for each thread, and forks that wait for them. A thread counts
// itself and then looks for forks; a fork counts itself and then looks for threads. All of this has one order
// (memory_order_seq_cst), so at least one of the two sees the other.
struct alignas(64) Inside {
  std::atomic<std::uint32_t> threads{0};
};
constexpr unsigned log_stripes = 4;
constinit std::array<Inside, 1 << log_stripes> inside{};
constinit std::atomic<std::uint32_t> forking{0};

thread_local unsigned depth = 0;  // nested scopes of this thread

constexpr std::chrono::seconds most_wait{1};

std::atomic<std::uint32_t>& stripe_of_this_thread() {
  constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15u;  // spreads addresses (Knuth, volume 3, section 6.4)
  const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&depth) * golden_ratio;
  return inside[static_cast<std::size_t>(hash >> (64 - log_stripes))].threads;
}

std::uint32_t threads_inside() {
  std::uint32_t threads = 0;
  for (const Inside& stripe : inside) threads += stripe.threads.load(std::memory_order_seq_cst);
  return threads;
}

void before_fork() {
  forking.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t own = depth != 0 ? 1 : 0;
  const auto end = std::chrono::steady_clock::now() + most_wait;
  while (threads_inside() > own && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void after_fork_in_parent() {
  if (forking.fetch_sub(1, std::memory_order_seq_cst) == 1) forking.notify_all();
}

void after_fork_in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  for (Inside& stripe : inside) stripe.threads.store(0, std::memory_order_relaxed);
  if (depth != 0) stripe_of_this_thread().store(1, std::memory_order_relaxed);
  forking.store(0, std::memory_order_seq_cst);
}

// Done when the library is loaded: later, a thread could fork while another one registers.
[[maybe_unused]] const int registered = pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);

}  // namespace

unsigned fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

NotAtFork::NotAtFork() noexcept {
  if (depth++ != 0) return;
  std::atomic<std::uint32_t>& stripe = stripe_of_this_thread();
  while (true) {
    stripe.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = forking.load(std::memory_order_seq_cst);
    if (seen == 0) return;
    stripe.fetch_sub(1, std::memory_order_seq_cst);
    forking.wait(seen, std::memory_order_seq_cst);
  }
}

NotAtFork::~NotAtFork() {
  if (--depth == 0) stripe_of_this_thread().fetch_sub(1, std::memory_order_seq_cst);
}

bool Once::begin() noexcept {
  const std::uint32_t here = 2 + fork_count();
  std::uint32_t seen = state_.load(std::memory_order_acquire);
  while (seen != done) {
    if (seen == here) {
      state_.wait(seen, std::memory_order_acquire);
      seen = state_.load(std::memory_order_acquire);
    } else if (state_.compare_exchange_weak(seen, here, std::memory_order_acquire, std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void Once::end(std::uint32_t state) noexcept {
  state_.store(state, std::memory_order_release);
  state_.notify_all();
}

}  // namespace warpcipher
