// SPDX-License-Identifier: Apache-2.0
#include "queue/fair_order.hpp"

#include <algorithm>
#include <utility>

namespace warpcipher {
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
      if (!fits && !taken.empty()) return taken;  // the turn goes on in the next payload
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
