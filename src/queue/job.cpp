// SPDX-License-Identifier: Apache-2.0
#include "queue/job.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <set>
#include <utility>
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

namespace {

// Bytes that a message counts in a turn in addition to its text, so that empty messages are not free.
constexpr std::size_t message_cost = 256;

// Submitters to remember, with or without jobs: one that returns is then not allocated again.
constexpr std::size_t most_idle_submitters = 1024;

std::size_t cost_of(const Job& job) { return job.text_len() + message_cost; }

}  // namespace

Submitter& FairOrder::submitter_of(Job& job) {
  if (last_pushed_ == nullptr || last_pushed_->id != job.submitter_) {
    last_pushed_ = &submitters_.try_emplace(job.submitter_, Submitter{job.submitter_, {}}).first->second;
  }
  return *(job.from_ = last_pushed_);
}

void FairOrder::release(Job& job) {
  Submitter& submitter = *job.from_;
  submitter.held -= job.memory_len();
  job.from_ = nullptr;
  if (submitter.held != 0 || submitters_.size() <= most_idle_submitters) return;
  if (last_pushed_ == &submitter) last_pushed_ = nullptr;
  submitters_.erase(submitter.id);
}

std::size_t FairOrder::held_by(std::uint64_t submitter) const {
  const auto found = submitters_.find(submitter);
  return found == submitters_.end() ? 0 : found->second.held;
}

void FairOrder::push(Job& job) {
  Submitter& submitter = submitter_of(job);
  submitter.held += job.memory_len();
  if (submitter.jobs.empty()) turns_.push_back(submitter);
  submitter.jobs.push_back(job);
  by_age_.push_back(job);
  job.queued_ = true;
  text_len_ += job.text_len();
}

std::shared_ptr<Job> FairOrder::take_out(Job& job) {
  job.from_->jobs.remove(job);
  by_age_.remove(job);
  job.queued_ = false;
  text_len_ -= job.text_len();
  return std::move(job.self_);
}

std::shared_ptr<Job> FairOrder::remove(Job& job) {
  Submitter& submitter = *job.from_;
  std::shared_ptr<Job> out = take_out(job);
  if (submitter.jobs.empty()) end_turns(submitter);
  return out;
}

// Removes a submitter without jobs, and drops its credit.
void FairOrder::end_turns(Submitter& submitter) {
  turns_.remove(submitter);
  submitter.credit = 0;
  submitter.in_turn = false;
}

// Ends the turn of the first submitter.
void FairOrder::next_turn() {
  Submitter& front = *turns_.first();
  if (front.jobs.empty()) return end_turns(front);
  front.in_turn = false;
  turns_.remove(front);
  turns_.push_back(front);
}

std::vector<std::shared_ptr<Job>> FairOrder::take(std::size_t max_len, std::size_t max_jobs) {
  std::vector<std::shared_ptr<Job>> taken;
  taken.reserve(std::min(jobs(), max_jobs));
  std::size_t len = 0;
  while (!turns_.empty()) {
    Submitter& submitter = *turns_.first();
    if (!submitter.in_turn) submitter.credit += turn_len;
    submitter.in_turn = true;
    while (!submitter.jobs.empty()) {
      Job& job = *submitter.jobs.first();
      const bool fits = len + job.text_len() <= max_len && taken.size() < max_jobs;
      if (!fits && !taken.empty()) return taken;  // the turn continues in the next payload
      const std::size_t cost = cost_of(job);
      if (cost > submitter.credit && turns_.size() > 1) break;
      submitter.credit -= std::min(cost, submitter.credit);
      len += job.text_len();
      taken.push_back(take_out(job));
    }
    next_turn();
  }
  return taken;
}

}  // namespace warpcipher
