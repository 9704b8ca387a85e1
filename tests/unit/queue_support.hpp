// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the queue: texts to submit, and a runner that waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <vector>

#include "dispatch/run.hpp"
#include "queue/queue.hpp"
#include "support.hpp"

namespace warpcipher::test {

inline constexpr auto hour = std::chrono::microseconds(std::chrono::hours(1));

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

inline std::shared_ptr<Job> job_of(const Sample& sample) { return std::make_shared<Job>(sample.message); }

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

inline bool is_right(const Sample& sample) {
  Bytes out(sample.out.size()), tag(sample.tag);
  Message m = sample.message;
  m.out = out.data();
  m.tag = tag.data();
  Result result;
  run("reference", {&m, 1}, {&result, 1});
  return result.status == Status::ok && sample.tag == tag &&
         std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(m.output_len()), sample.out.begin()) &&
         sample.guard_intact();
}

inline std::uint64_t payloads_for(const Queue& queue, FlushReason reason) {
  return queue.statistics().reasons[static_cast<std::size_t>(reason)];
}

inline QueueLimits with_delay(std::chrono::microseconds delay, std::size_t max_in_flight = 1) {
  QueueLimits limits;
  limits.max_delay = delay;
  limits.max_in_flight = max_in_flight;
  return limits;
}

}  // namespace warpcipher::test
