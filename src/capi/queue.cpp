// SPDX-License-Identifier: Apache-2.0
// The C ABI: a queue of messages that come one by one, and the handles of its messages.
#include "queue/queue.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "capi/boundary.hpp"
#include "warpcipher.h"

using std::chrono::microseconds;
using warpcipher::Job;
using warpcipher::Queue;
using warpcipher::QueueLimits;
using warpcipher::capi::engine_name;
using warpcipher::capi::fail;
using warpcipher::capi::guarded;
using warpcipher::capi::report;
using warpcipher::capi::require;
using warpcipher::capi::to_message;
using warpcipher::capi::to_result;

namespace {

// A message with the receiver of its end.
class CallbackJob final : public Job {
 public:
  CallbackJob(const warpcipher::Message& message, wc_queue_callback callback, void* context)
      : Job(message), callback_(callback), context_(context) {}

  wc_result told_result() const {
    if (state() == State::cancelled) return {WC_CANCELLED, 0};
    return to_result(result());
  }

  void tell() const {
    if (callback_ == nullptr) return;
    const wc_result now = told_result();
    callback_(context_, &now, failure().c_str());
  }

 private:
  const wc_queue_callback callback_;
  void* const context_;
};

QueueLimits to_limits(const wc_queue_limits* given) {
  QueueLimits limits;
  if (given == nullptr) return limits;
  if (given->max_bytes != 0) limits.max_bytes = given->max_bytes;
  if (given->max_messages != 0) limits.max_messages = given->max_messages;
  constexpr std::uint64_t longest = 3600ULL * 1'000'000;
  require(given->max_delay_us <= longest, "max_delay_us is more than an hour");
  if (given->max_delay_us != 0) limits.max_delay = microseconds(static_cast<std::int64_t>(given->max_delay_us));
  if (given->memory_limit != 0) limits.memory_limit = given->memory_limit;
  limits.max_in_flight = given->max_in_flight;
  return limits;
}

microseconds to_timeout(std::int64_t timeout_us) { return timeout_us < 0 ? Queue::for_ever : microseconds(timeout_us); }

void tell_all(std::span<const std::shared_ptr<Job>> jobs) {
  for (const auto& job : jobs) static_cast<const CallbackJob&>(*job).tell();
}

}  // namespace

struct wc_queue {
  wc_queue(const std::string& engine, const QueueLimits& limits) : queue(engine, limits, tell_all) {}
  Queue queue;
};

struct wc_job {
  std::shared_ptr<CallbackJob> job;
};

wc_status wc_queue_new(wc_queue** out, const char* engine, const wc_queue_limits* limits) {
  return guarded([&] {
    require(out != nullptr, "out is a null pointer");
    *out = nullptr;
    *out = new wc_queue(std::string(engine_name(engine)), to_limits(limits));
    return WC_OK;
  });
}

wc_status wc_queue_submit(wc_queue* queue, wc_job** job, const wc_message* message, uint64_t submitter,
                          int64_t timeout_us, wc_queue_callback callback, void* context) {
  return guarded([&] {
    if (job != nullptr) *job = nullptr;
    require(queue != nullptr && message != nullptr, "queue or message is a null pointer");
    // The handle is made first: once the message is in the queue nothing may fail.
    auto handle = job != nullptr ? std::make_unique<wc_job>() : nullptr;
    const auto made = std::make_shared<CallbackJob>(to_message(*message), callback, context);
    switch (queue->queue.submit(made, submitter, to_timeout(timeout_us))) {
      case Queue::Admission::full:
        return fail(WC_QUEUE_FULL, "the queue's memory_limit left no room for the message in time");
      case Queue::Admission::closed:
        return fail(WC_QUEUE_CLOSED, "the queue is closed: make a new one for more messages");
      case Queue::Admission::accepted: break;
    }
    if (handle != nullptr) {
      handle->job = made;
      *job = handle.release();
    }
    return WC_OK;
  });
}

wc_status wc_queue_cancel(int* cancelled, wc_queue* queue, wc_job* job) {
  return guarded([&] {
    require(queue != nullptr && job != nullptr, "queue or job is a null pointer");
    const bool taken = queue->queue.cancel(*job->job);
    if (cancelled != nullptr) *cancelled = taken;
    return WC_OK;
  });
}

wc_status wc_queue_flush(wc_queue* queue) {
  return guarded([&] {
    require(queue != nullptr, "queue is a null pointer");
    queue->queue.flush();
    return WC_OK;
  });
}

wc_status wc_queue_close(wc_queue* queue, int cancel) {
  return guarded([&] {
    require(queue != nullptr, "queue is a null pointer");
    queue->queue.close(cancel != 0);
    return WC_OK;
  });
}

wc_status wc_queue_stats(wc_queue_statistics* statistics, const wc_queue* queue) {
  return guarded([&] {
    require(statistics != nullptr && queue != nullptr, "statistics or queue is a null pointer");
    const warpcipher::QueueStatistics now = queue->queue.statistics();
    *statistics = {now.payloads,     now.messages,     now.bytes,       now.failed_jobs,     now.cancelled_jobs,
                   now.refused_jobs, now.waiting_jobs, now.memory_used, now.most_memory_used};
    return WC_OK;
  });
}

void wc_queue_free(wc_queue* queue) { delete queue; }

wc_status wc_job_wait(int* done, wc_result* result, const wc_job* job, int64_t timeout_us) {
  return guarded([&] {
    require(job != nullptr, "job is a null pointer");
    if (done != nullptr) *done = 0;
    const CallbackJob& message = *job->job;
    if (!message.wait_for(to_timeout(timeout_us))) return WC_OK;
    const wc_result now = message.told_result();
    if (done != nullptr) *done = 1;
    if (result != nullptr) *result = now;
    if (now.status == WC_CANCELLED) return fail(WC_CANCELLED, "the message was cancelled before it was launched");
    if (now.status != WC_OK && !message.failure().empty()) return fail(now.status, message.failure().c_str());
    return report(static_cast<warpcipher::Status>(now.status));
  });
}

void wc_job_free(wc_job* job) { delete job; }
