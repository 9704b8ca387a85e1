// SPDX-License-Identifier: Apache-2.0
#include "dispatch/batch.hpp"

#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/thread_pool.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {
namespace {

bool lies_on_device(const std::vector<Message>& messages) {
  return !messages.empty() && messages[0].memory == Memory::device;
}

}  // namespace

Batch::~Batch() {
  if (!thread_.joinable()) return;
  if (in_child()) {
    static_cast<void>(new std::thread(std::move(thread_)));  // the child lacks the thread: no join, no detach
  } else if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // when_done held the last reference
  } else {
    thread_.join();
  }
}

// At a fork another thread may have locked the mutex, or may have been changing the messages.
void Batch::check_process() const {
  if (in_child()) {
    throw Error(Status::engine_failure, "the batch belongs to the process before the fork: make a new one");
  }
}

std::size_t Batch::add(const Message& message) {
  check_process();
  const std::lock_guard lock(mutex_);
  if (started_) refuse("the batch has been started: make a new one for more messages");
  messages_.push_back(message);
  return messages_.size() - 1;
}

void Batch::start(Stream stream, WhenDone when_done) {
  check_process();
  const std::lock_guard lock(mutex_);
  if (started_) refuse("the batch has been started before");
  results_.resize(messages_.size());
  failure_ = nullptr;  // of a start that found no thread
  int device = -1;
  try {
    if (lies_on_device(messages_)) device = select_device_engine(engine_).current_device();
  } catch (const Error&) {
    failure_ = std::current_exception();  // wait() throws it, as all that keeps the batch from running
  }
  try {
    const SignalsBlocked blocked;
    thread_ =
        std::thread([this, stream, device, when_done = std::move(when_done)] { work(stream, device, when_done); });
  } catch (const std::system_error& error) {
    throw Error(Status::out_of_memory, "no thread to run the batch on: ", error.what());
  }
  started_ = true;
}

void Batch::work(Stream stream, int device, const WhenDone& when_done) noexcept {
  try {
    if (failure_) std::rethrow_exception(failure_);
    if (device < 0) {
      run(engine_, messages_, results_);
    } else {
      DeviceEngine& engine = select_device_engine(engine_);
      const SelectedDevice selected(engine, device);
      run(engine_, messages_, results_, stream);
      engine.wait(stream);
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  if (when_done) when_done(failure_ ? nullptr : &results_);
  done_.store(true, std::memory_order_release);
}

Status Batch::wait() {
  if (!in_child() || !is_done()) {
    check_process();
    const std::lock_guard lock(mutex_);
    if (!started_) refuse("the batch has not been started");
    if (thread_.joinable()) thread_.join();
  }
  if (failure_) std::rethrow_exception(failure_);
  return first_failure(results_);
}

Result Batch::result(std::size_t index) const {
  if (!is_done()) refuse("the batch is not done: wait for it first");
  if (failure_) refuse("the batch failed as a whole, so no message has a result");
  if (index >= results_.size()) {
    refuse("message ", index, " of a batch of ", results_.size());
  }
  return results_[index];
}

}  // namespace warpcipher
