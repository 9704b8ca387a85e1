// SPDX-License-Identifier: Apache-2.0
// A payload of a queue: jobs that run as one batch. The failure of one job does not reach the others.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "queue/job.hpp"

namespace warpcipher {

// Runs messages as run() in src/dispatch/run.hpp does. The runner knows the engine.
using Runner = std::function<void(std::span<const Message>, std::span<Result>)>;

class Payload {
 public:
  // Runs the jobs and fills in their results. Never throws: an exception becomes the result of
  //   - the whole payload, when the engine failed. It is not run again: text in place may be half done, an error of
  //     CUDA stays for the life of the process, and only the caller knows whether there is another way. Outputs that
  //     are not in place are wiped.
  //   - the jobs at fault, when messages of different jobs cannot run together (nothing has been written by then). Of
  //     two that encrypt with the same key and nonce the one that was submitted later is refused; two of which one
  //     writes where the other reads or writes run one after the other.
  // The state of the jobs is left to the caller.
  static void run(const Runner& runner, std::span<const std::shared_ptr<Job>> jobs) noexcept;

 private:
  static void separate(const Runner& runner, std::span<const std::shared_ptr<Job>> jobs);
  static void fail(Job& job, Status status, const std::string& why, bool written) noexcept;
};

}  // namespace warpcipher
