// SPDX-License-Identifier: Apache-2.0
// The jobs that wait in a queue, and the order in which payloads take them: in turn from each submitter, and from one
// submitter in the order in which he came (deficit round robin, Shreedhar and Varghese 1995). Not safe from several
// threads: the queue's mutex guards it.
//
//   submitter A   [ 16K | 16K | 16K | 16K | 16K | 16K | ... ]
//   submitter B   [ 1K ]                                           payload: A A A A  B  C C C C  A A ...
//   submitter C   [ 16K | 16K | 16K | 16K | 16K ]                           one turn: turn_len bytes
//
// What a submitter may take in a turn is counted in bytes, so neither many messages nor long ones win more than a
// share, and a submitter with one short message waits for one turn of each of the others at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "queue/intrusive_list.hpp"
#include "queue/job.hpp"

namespace warpcipher {

struct Submitter {
  const std::uint64_t id;
  IntrusiveList<Job, &Job::by_submitter_> jobs;  // that wait
  std::size_t held = 0;                          // Job::memory_len() of those that wait or run
  std::size_t credit = 0;                        // bytes that he may take in this turn
  bool in_turn = false;                          // the turn has begun: the credit has been given
  ListLinks<Submitter> turns{};
};

class FairOrder {
 public:
  static constexpr std::size_t turn_len = std::size_t{64} << 10;

  // Takes a job up, which holds itself, behind the others of its submitter_, and counts its memory as that one's until
  // release().
  void push(Job& job);

  // Takes a job out that waits here; returns its hold of itself.
  std::shared_ptr<Job> remove(Job& job);

  // The next payload: jobs of at most max_len bytes of text and max_messages messages together, but at least one job.
  std::vector<std::shared_ptr<Job>> take(std::size_t max_len, std::size_t max_messages);

  // The memory of a job that was pushed is free again.
  void release(Job& job);
  std::size_t held_by(std::uint64_t submitter) const;

  bool empty() const noexcept { return by_age_.empty(); }
  std::size_t text_len() const noexcept { return text_len_; }
  std::size_t messages() const noexcept { return messages_; }
  std::size_t jobs() const noexcept { return by_age_.size(); }
  Job& oldest() const noexcept { return *by_age_.first(); }

 private:
  Submitter& submitter_of(Job& job);
  std::shared_ptr<Job> take_out(Job& job);
  void end_turns(Submitter& submitter);
  void next_turn();

  std::unordered_map<std::uint64_t, Submitter> submitters_;
  Submitter* last_pushed_ = nullptr;                   // neighbours mostly come from one submitter
  IntrusiveList<Submitter, &Submitter::turns> turns_;  // those who have jobs here; the first is whose turn it is
  IntrusiveList<Job, &Job::by_age_> by_age_;
  std::size_t text_len_ = 0;
  std::size_t messages_ = 0;
};

}  // namespace warpcipher
