// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fair_order.hpp"

#include <algorithm>
#include <utility>

namespace warpcipher {
namespace {

// What a message takes of a turn beside its text, so that empty messages are not free.
constexpr std::size_t message_cost = 256;

std::size_t cost_of(const Job& job) { return job.text_len() + job.messages().size() * message_cost; }

}  // namespace

void FairOrder::push(std::shared_ptr<Job> job) {
  auto found = submitters_.find(job->submitter_);
  if (found == submitters_.end()) {
    turns_.push_back({job->submitter_, {}, 0, false});
    found = submitters_.emplace(job->submitter_, std::prev(turns_.end())).first;
  }
  Submitter& submitter = *found->second;
  Job& pushed = *job;
  pushed.by_age_ = by_age_.insert(by_age_.end(), &pushed);
  pushed.by_submitter_ = submitter.jobs.insert(submitter.jobs.end(), std::move(job));
  text_len_ += pushed.text_len();
  messages_ += pushed.messages().size();
}

std::shared_ptr<Job> FairOrder::take_out(Submitter& from, Job& job) {
  std::shared_ptr<Job> out = std::move(*job.by_submitter_);
  from.jobs.erase(job.by_submitter_);
  by_age_.erase(job.by_age_);
  text_len_ -= job.text_len();
  messages_ -= job.messages().size();
  return out;
}

std::shared_ptr<Job> FairOrder::remove(Job& job) {
  const auto found = submitters_.find(job.submitter_);
  const Turns::iterator submitter = found->second;
  std::shared_ptr<Job> out = take_out(*submitter, job);
  if (submitter->jobs.empty()) {
    submitters_.erase(found);
    turns_.erase(submitter);
  }
  return out;
}

// Ends the turn of the submitter in front. One who has nothing left goes, and his credit with him.
void FairOrder::next_turn() {
  Submitter& front = turns_.front();
  if (front.jobs.empty()) {
    submitters_.erase(front.id);
    turns_.pop_front();
  } else {
    front.in_turn = false;
    turns_.splice(turns_.end(), turns_, turns_.begin());
  }
}

std::vector<std::shared_ptr<Job>> FairOrder::take(std::size_t max_len, std::size_t max_messages) {
  std::vector<std::shared_ptr<Job>> taken;
  std::size_t len = 0, messages = 0;
  while (!turns_.empty()) {
    Submitter& submitter = turns_.front();
    if (!submitter.in_turn) submitter.credit += turn_len;
    submitter.in_turn = true;
    while (!submitter.jobs.empty()) {
      Job& job = *submitter.jobs.front();
      const bool fits = len + job.text_len() <= max_len && messages + job.messages().size() <= max_messages;
      if (!fits && !taken.empty()) return taken;  // the turn goes on in the next payload
      const std::size_t cost = cost_of(job);
      if (cost > submitter.credit && turns_.size() > 1) break;
      submitter.credit -= std::min(cost, submitter.credit);
      len += job.text_len();
      messages += job.messages().size();
      taken.push_back(take_out(submitter, job));
    }
    next_turn();
  }
  return taken;
}

}  // namespace warpcipher
