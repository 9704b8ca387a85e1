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
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "pipeline/job.hpp"

namespace warpcipher {

class FairOrder {
 public:
  static constexpr std::size_t turn_len = std::size_t{64} << 10;

  // Takes a job up behind the others of its submitter_.
  void push(std::shared_ptr<Job> job);

  // Takes a job out that waits here; returns the order's own hold of it.
  std::shared_ptr<Job> remove(Job& job);

  // The next payload: jobs of at most max_len bytes of text and max_messages messages together, but at least one job.
  std::vector<std::shared_ptr<Job>> take(std::size_t max_len, std::size_t max_messages);

  bool empty() const noexcept { return by_age_.empty(); }
  std::size_t text_len() const noexcept { return text_len_; }
  std::size_t messages() const noexcept { return messages_; }
  std::size_t jobs() const noexcept { return by_age_.size(); }
  const Job& oldest() const { return *by_age_.front(); }
  Job& oldest() { return *by_age_.front(); }

 private:
  struct Submitter {
    std::uint64_t id;
    std::list<std::shared_ptr<Job>> jobs;
    std::size_t credit = 0;  // bytes that he may take in this turn
    bool in_turn = false;    // the turn has begun: the credit has been given
  };
  using Turns = std::list<Submitter>;

  std::shared_ptr<Job> take_out(Submitter& from, Job& job);
  void next_turn();

  Turns turns_;  // those who have jobs here; the front is whose turn it is
  std::unordered_map<std::uint64_t, Turns::iterator> submitters_;
  std::list<Job*> by_age_;
  std::size_t text_len_ = 0;
  std::size_t messages_ = 0;
};

}  // namespace warpcipher
