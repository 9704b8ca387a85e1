// SPDX-License-Identifier: Apache-2.0
// A batch that runs in the background, for the C ABI and for Python: messages are added, started together, and asked
// about or waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/fork.hpp"
#include "dispatch/run.hpp"

namespace warpcipher {

// Safe from any thread. The memory of messages is borrowed until the batch is done. In the child of a fork, a batch
// that was done before the fork keeps its results; add(), start(), and wait() for any other throw
// Error{engine_failure}.
class Batch {
 public:
  explicit Batch(std::string engine) : engine_(std::move(engine)) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();  // waits, except in the thread of the batch

  // Called on the thread of the batch, before it is done: with the results, or with nullptr where no message was run.
  using WhenDone = std::function<void(const std::vector<Result>*)>;

  // The number of the message, from 0. It is checked with the others when the batch runs. Throws
  // Error{invalid_argument} when the batch has been started.
  std::size_t add(const Message& message);

  // Runs the messages, as run() does, on a thread of the batch's own. Text in device memory: after the work on `stream`
  // now; the default stream belongs to the device which is current here. The thread destroys when_done, which must not
  // throw, as its last act. Throws Error{invalid_argument} when the batch was started before, Error{out_of_memory} when
  // the system has no more threads.
  void start(Stream stream, WhenDone when_done = {});

  // Whether this is the child of a fork, and the batch is the parent's.
  bool in_child() const noexcept { return process_ != fork_count(); }

  // Whether the work is done, on the device too. False before start().
  bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }

  // Waits until it is done; ok, or the status of the first message that failed. Throws the error of run(), and
  // Error{invalid_argument} when the batch has not been started.
  Status wait();

  // Throws Error{invalid_argument} when the batch is not done, failed as a whole, or has no such message.
  Result result(std::size_t index) const;

 private:
  void work(Stream stream, int device, const WhenDone& when_done) noexcept;
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
