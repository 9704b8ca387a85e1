// SPDX-License-Identifier: Apache-2.0
#include "queue/job.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <set>
#include <vector>

#include "core/wipe.hpp"
#include "message/checks.hpp"

namespace warpcipher {
namespace {

// A message's cost in addition to its bytes: descriptors here and in the engine. Bounds the number of empty
// messages.
constexpr std::size_t descriptor_len = 512;

}  // namespace

Job::Job(const Message& message) : message_(message) {
  const Message& m = message_;
  if (m.memory != Memory::host) {
    refuse("a queue takes messages in host memory: run data on a GPU as a batch, where it lies");
  }
  check_messages({&m, 1});
  text_len_ = m.in_len;
  memory_len_ = m.in_len + (m.in == m.out ? 0 : m.output_len()) + m.aad_len + m.tag_len + descriptor_len;
}

Job::State Job::state() const {
  check_process();
  return state_.load(std::memory_order_acquire);
}

void Job::wait() const {
  check_process();
  if (ended()) return;
  std::unique_lock lock(mutex_);
  awaited_.store(true, std::memory_order_seq_cst);
  changed_.wait(lock, [&] { return ended(); });
}

bool Job::wait_for(std::chrono::microseconds time) const {
  check_process();
  if (time > std::chrono::hours(24 * 365)) return wait(), true;  // further than clocks count
  std::unique_lock lock(mutex_);
  awaited_.store(true, std::memory_order_seq_cst);
  return changed_.wait_for(lock, time, [&] { return ended(); });
}

// After a fork the mutex may stay locked for ever.
void Job::check_process() const {
  if (process_ != fork_count()) {
    throw Error(Status::engine_failure, "the job belongs to the process before the fork, whose queue does the work");
  }
}

// When a job is done usually no thread waits for it yet; then no thread is woken.
void Job::set_state(State state) {
  if (state == State::running) return state_.store(state, std::memory_order_release);  // for which nobody waits
  state_.store(state, std::memory_order_seq_cst);
  if (!awaited_.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

namespace {

// Two messages to encrypt must not share these if needs_own_nonce(): key and nonce.
std::string key_and_nonce(const Message& m) {
  const auto& key = m.key->fingerprint();
  std::string name = std::string(m.algorithm().name) + ":";
  name.append(reinterpret_cast<const char*>(key.data()), key.size());
  name.append(reinterpret_cast<const char*>(m.iv), m.iv_len);
  return name;
}

}  // namespace

void Payload::fail(Job& job, Status status, const std::string& why, bool written) noexcept {
  const Message& m = job.message_;
  job.result_ = {status, 0};
  if (written && m.in != m.out) secure_wipe(m.out, m.output_len());
  if (written && m.direction == Direction::encrypt) secure_wipe(m.tag, m.tag_len);
  try {
    job.failure_ = why;
  } catch (const std::bad_alloc&) {  // the status has to do
  }
}

void Payload::run(const Runner& runner, std::span<const std::shared_ptr<Job>> jobs) noexcept {
  const auto fail_all = [&](Status status, const std::string& why) {
    for (const auto& job : jobs) fail(*job, status, why, status != Status::invalid_argument);
  };
  try {
    std::vector<Message> messages;
    messages.reserve(jobs.size());
    for (const auto& job : jobs) messages.push_back(job->message_);
    std::vector<Result> results(messages.size());
    try {
      runner(messages, results);
    } catch (const Error& error) {
      if (error.status() != Status::invalid_argument || jobs.size() == 1) throw;
      return separate(runner, jobs);
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i]->result_ = results[i];
  } catch (const Error& error) {
    fail_all(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    fail_all(Status::out_of_memory, "out of host memory");
  } catch (const std::exception& error) {
    fail_all(Status::engine_failure, error.what());
  }
}

void Payload::separate(const Runner& runner, std::span<const std::shared_ptr<Job>> jobs) {
  // Payloads take submitters in turn, so the order of the jobs is not that in which they came.
  std::vector<std::shared_ptr<Job>> by_age(jobs.begin(), jobs.end()), kept;
  std::sort(by_age.begin(), by_age.end(), [](const auto& a, const auto& b) { return a->number_ < b->number_; });
  std::set<std::string> seen;
  for (const auto& job : by_age) {
    const Message& m = job->message_;
    if (!needs_own_nonce(m) || seen.insert(key_and_nonce(m)).second) {
      kept.push_back(job);
    } else {
      fail(*job, Status::invalid_argument,
           "a message in the same payload was submitted before with the same key and the same nonce: " +
               repeated_nonce_rule(m.algorithm()),
           false);
    }
  }
  if (kept.size() < jobs.size()) return run(runner, kept);
  const std::span<const std::shared_ptr<Job>> all(kept);
  run(runner, all.first(all.size() / 2));
  run(runner, all.subspan(all.size() / 2));
}

}  // namespace warpcipher
