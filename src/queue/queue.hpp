// SPDX-License-Identifier: Apache-2.0
// A queue that makes batches of messages which come one by one (Harrison 2008, sections 5 to 7: payloads). Many threads
// submit jobs; workers combine them into payloads by size and age and run them as run() does.
//
//   submit --> memory limit --> jobs waiting, by submitter --> payload --> runner --> results, listener
//              (blocks, or       FairOrder: in turn             Payload     up to max_in_flight at once, so that the
//               refuses)                                                    copies of one overlap another's kernels
//
// A payload is launched as soon as one of the reasons of FlushReason holds and a worker is free. While all workers are
// busy messages gather, so payloads grow with the load.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "queue/job.hpp"

namespace warpcipher {

struct QueueLimits {
  std::size_t max_bytes = std::size_t{8} << 20;       // text of one payload; a longer message makes one by itself
  std::size_t max_messages = 4096;                    // messages of one payload
  std::chrono::microseconds max_delay{200};           // how long a message may wait for company
  std::size_t memory_limit = std::size_t{256} << 20;  // Job::memory_len() of all jobs that are waiting or running
  std::size_t max_in_flight = 0;                      // payloads running at once: the number of workers; 0: a default
};

// The max_in_flight of a queue that asks for none: 8 where its payloads are to go to a GPU (may_use_device()), else 4.
std::size_t default_in_flight(std::string_view engine);

// Why a payload was launched, in the order in which the reasons are checked.
enum class FlushReason : std::uint8_t {
  bytes,     // max_bytes were waiting
  messages,  // max_messages were waiting
  flush,     // flush() was called
  close,     // the queue is closing
  memory,    // a submitter waited for memory, which only the end of a payload frees
  delay,     // the oldest message had waited for max_delay
};
inline constexpr std::size_t flush_reason_count = 6;
inline constexpr std::array<std::string_view, flush_reason_count> flush_reason_names = {"bytes", "messages", "flush",
                                                                                        "close", "memory",   "delay"};

struct QueueStatistics {
  std::uint64_t payloads = 0;     // launched
  std::uint64_t messages = 0;     // of them
  std::uint64_t bytes = 0;        // of text
  std::uint64_t failed_jobs = 0;  // whose payload could not be run, or that could not run with others
  std::uint64_t cancelled_jobs = 0;
  std::uint64_t refused_jobs = 0;                           // for which there was no memory in time
  std::array<std::uint64_t, flush_reason_count> reasons{};  // payloads, by FlushReason
  std::size_t waiting_jobs = 0;                             // now
  std::size_t memory_used = 0;                              // now
  std::size_t most_memory_used = 0;
};

class Queue {
 public:
  enum class Admission : std::uint8_t {
    accepted,
    full,    // the memory limit left no room in time
    closed,  // the queue is closing or closed
  };

  // Called with each payload's jobs once they are done, and with those that close() cancelled, from the thread that did
  // it and with no lock held. Must not throw. Memory is freed before it is called.
  using Listener = std::function<void(std::span<const std::shared_ptr<Job>>)>;

  static constexpr std::chrono::microseconds for_ever = std::chrono::microseconds::max();

  // Runs payloads with the engine of that name ("auto" chooses for each payload). Throws Error{invalid_argument} for a
  // limit of 0, max_in_flight aside, Error{engine_unavailable} when that engine cannot run.
  explicit Queue(const std::string& engine, const QueueLimits& limits = {}, Listener listener = {});
  // With the caller's own runner, which counts as one on the CPU.
  explicit Queue(Runner runner, const QueueLimits& limits = {}, Listener listener = {});
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  // As close(); from inside the listener it does not wait, and the workers end by themselves. In the child of a fork it
  // does nothing.
  ~Queue();

  // Hands a job over, once. `submitter` is anything that identifies a client: payloads take them in turn, and memory
  // goes to the one that holds least. Waits up to `timeout` for memory; not at all inside the listener, which the
  // memory may be waiting for. Throws Error{invalid_argument} when the job needs more than the memory limit or was
  // submitted before, and Error{engine_failure} in the child of a fork.
  [[nodiscard]] Admission submit(const std::shared_ptr<Job>& job, std::uint64_t submitter,
                                 std::chrono::microseconds timeout = for_ever);

  // Takes a job back that has not been launched; false when it is too late. The listener is not called.
  bool cancel(Job& job);

  // Launches the waiting messages without further delay.
  void flush();

  // Takes no more jobs, and lets the workers end once all jobs are done. Does not wait.
  void stop();

  // As stop(), then waits until all jobs are done and the workers have ended; with `cancel_waiting` jobs that have not
  // been launched are cancelled. May be called again. Throws Error{invalid_argument} inside the listener, which would
  // wait for itself.
  void close(bool cancel_waiting = false);

  // True inside the listener, where calls do not wait.
  bool is_worker() const noexcept;

  // True once the workers have ended, or in the child of a fork, if there are none.
  bool ended() const;

  QueueStatistics statistics() const;
  const QueueLimits& limits() const noexcept;  // max_in_flight is never 0 here

 private:
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace warpcipher
