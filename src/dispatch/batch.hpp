// SPDX-License-Identifier: Apache-2.0
// A batch that runs in the background: messages are added, started together, and asked about or waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/fork.hpp"
#include "dispatch/run.hpp"

namespace warpcipher {

// Safe from any thread. What messages point to is borrowed until the batch is done. In the child of a fork a batch of
// the parent has the results that it had at the fork; add(), start(), and wait() for more throw Error{engine_failure}.
class Batch {
 public:
  explicit Batch(std::string engine) : engine_(std::move(engine)) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();  // waits

  // The number of the message, from 0. It is checked with the others when the batch runs. Throws
  // Error{invalid_argument} when the batch has been started.
  std::size_t add(const Message& message);

  // Runs the messages, as run() does, on a thread of the batch's own. Text in device memory: after what is on `stream`
  // now, and on the device that is current here where that is the default stream's. Throws Error{invalid_argument} when
  // it has been started before, Error{out_of_memory} when there is no thread to be had.
  void start(Stream stream);

  // Whether the work is done, on the device too. False before start().
  bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }

  // Waits until it is done; ok, or the status of the first message that failed. Throws what run() threw, and
  // Error{invalid_argument} when the batch has not been started.
  Status wait();

  // Throws Error{invalid_argument} when the batch is not done, failed as a whole, or has no such message.
  Result result(std::size_t index) const;

 private:
  void work(Stream stream, int device) noexcept;
  bool in_child() const noexcept { return process_ != fork_count(); }
  void check_process() const;

  const std::string engine_;
  const unsigned process_ = fork_count();
  mutable std::mutex mutex_;  // of what callers change: messages_, thread_, started_
  std::vector<Message> messages_;
  std::thread thread_;
  bool started_ = false;
  std::vector<Result> results_;  // and failure_: written before done_ is set, not changed afterwards
  std::exception_ptr failure_;
  std::atomic<bool> done_ = false;
};

}  // namespace warpcipher
