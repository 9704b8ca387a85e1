// SPDX-License-Identifier: Apache-2.0
// The waiting jobs of a queue and the order in which payloads take them: from each submitter in turn, and from one
// submitter the oldest first (deficit round robin, Shreedhar and Varghese 1995). Not thread-safe: the queue's mutex
// guards it.
//
//   submitter A   [ 16K | 16K | 16K | 16K | 16K | 16K | ... ]
//   submitter B   [ 1K ]                                           payload: A A A A  B  C C C C  A A ...
//   submitter C   [ 16K | 16K | 16K | 16K | 16K ]                           one turn: turn_len bytes
//
// A turn is counted in bytes, so neither many messages nor long ones win more than a fair share. A submitter with one
// short message waits for at most one turn of each other submitter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "queue/job.hpp"

namespace warpcipher {

struct Submitter {
  const std::uint64_t id;
  IntrusiveList<Job, &Job::by_submitter_> jobs;  // waiting
  std::size_t held = 0;                          // Job::memory_len() of its waiting and running jobs
  std::size_t credit = 0;                        // bytes that it may still take in this turn
  bool in_turn = false;                          // its turn has begun, and the credit has been added
  ListLinks<Submitter> turns{};
};

class FairOrder {
 public:
  static constexpr std::size_t turn_len = std::size_t{64} << 10;

  // Adds a job after the others of its submitter, and counts its memory for that submitter until release(). Job::self_
  // keeps the job alive.
  void push(Job& job);

  // Removes a job that waits here, and returns its Job::self_.
  std::shared_ptr<Job> remove(Job& job);

  // The next payload: at most max_jobs jobs, of at most max_len bytes of text together, but at least one.
  std::vector<std::shared_ptr<Job>> take(std::size_t max_len, std::size_t max_jobs);

  // Stops counting the memory of a job that was pushed.
  void release(Job& job);
  std::size_t held_by(std::uint64_t submitter) const;

  bool empty() const noexcept { return by_age_.empty(); }
  std::size_t text_len() const noexcept { return text_len_; }
  std::size_t jobs() const noexcept { return by_age_.size(); }
  Job& oldest() const noexcept { return *by_age_.first(); }

 private:
  Submitter& submitter_of(Job& job);
  std::shared_ptr<Job> take_out(Job& job);
  void end_turns(Submitter& submitter);
  void next_turn();

  std::unordered_map<std::uint64_t, Submitter> submitters_;
  Submitter* last_pushed_ = nullptr;  // a cache: most jobs come from the same submitter as the one before
  IntrusiveList<Submitter, &Submitter::turns> turns_;  // submitters with jobs here; it is the first one's turn
  IntrusiveList<Job, &Job::by_age_> by_age_;
  std::size_t text_len_ = 0;
};

}  // namespace warpcipher
