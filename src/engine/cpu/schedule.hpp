// SPDX-License-Identifier: Apache-2.0
// The schedule of a plan: a list of grains that threads take in order. A grain is enough work to be worth fetching. A
// pure function makes it, so it is tested without threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/thread_pool.hpp"
#include "message/plan.hpp"

namespace warpcipher {

// The code for AES here: libcrypto, or own code with AES-NI or with VAES.
enum class AesForm : std::uint8_t { libcrypto, aesni, vaes };
AesForm aes_form();

// Work is counted in picoseconds of one core: `message` for each message, whatever its length, and `byte` for each of
// its bytes.
struct WorkCost {
  std::uint64_t message;
  std::uint64_t byte;
};

// `form`: of AES; other ciphers do not read it.
WorkCost cost_of(const Algorithm& algorithm, Direction direction, AesForm form = aes_form());

// Less than this runs on the calling thread: waking another one costs more than it saves.
inline constexpr std::uint64_t min_shared_cost = 20'000'000;

// Threads take about this much at a time.
inline constexpr std::uint64_t grain_cost = 40'000'000;

// A part of one group's work: whole messages, or one tile of a message that is split.
struct Grain {
  static constexpr std::uint32_t not_split = UINT32_MAX;

  std::uint32_t group;  // index into Plan::groups
  std::uint32_t split;  // index into Schedule::split, or not_split
  std::uint64_t first;  // messages at [first, last) of Group::messages; or `first` is the tile
  std::uint64_t last;
};

struct SplitMessage {
  std::uint32_t message;  // index into Plan::messages
  std::uint64_t tiles;
};

// Every message is in exactly one grain, or every tile of it is.
struct Schedule {
  std::vector<Grain> grains;
  std::vector<SplitMessage> split;
  bool shared = false;  // worth more than one thread
};

// Messages of a serial mode that one core does side by side; 1 for other modes.
std::size_t serial_lanes(const Algorithm& algorithm, Direction direction);

// Whether one GCM message can be decrypted in parts: by own code, or by a libcrypto that gives a part's tag.
bool splits_decryption();

// `threads` counts the caller. A message is split when its mode allows and it would keep one thread busy while others
// have nothing left: whole messages are as fast or faster. The plan must have been made for tiles of cpu_tile_units.
Schedule make_schedule(const Plan& plan, std::size_t threads);

// Runs the grains of a schedule.

// Every grain, on this thread or on the pool's. Sets the status of AEAD messages. Throws the error of a grain;
// the text of other messages may then be at their out or not.
void run_schedule(const Plan& plan, const Schedule& schedule, ThreadPool& pool, std::span<Status> statuses);

// One whole message, on this thread.
Status run_message(const Message& message);

}  // namespace warpcipher
