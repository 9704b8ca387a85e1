// SPDX-License-Identifier: Apache-2.0
// Runs the grains of a schedule.
#pragma once

#include <span>

#include "core/thread_pool.hpp"
#include "engine/cpu/schedule.hpp"

namespace warpcipher {

// Every grain, on this thread or on the pool's. Sets the status of AEAD messages. Throws the error of a grain;
// the text of other messages may then be at their out or not.
void run_schedule(const Plan& plan, const Schedule& schedule, ThreadPool& pool, std::span<Status> statuses);

// One whole message, on this thread.
Status run_message(const Message& message);

}  // namespace warpcipher
