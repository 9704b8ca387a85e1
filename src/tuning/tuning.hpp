// SPDX-License-Identifier: Apache-2.0
// Measurements of this machine: the best policies of kernels and of host transfers, and the rates that `auto` decides
// by. They are kept in the user's cache folder and hold while GPUs, driver, processor and library stay the same.
// Without them shipped defaults and a rule of thumb hold. They never change a result.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "message/message.hpp"

namespace warpcipher {

// The cost of work on each engine, as measured on this machine (tuner.hpp), and estimates for a batch in host memory.
// Plain data; src/dispatch chooses engines by it.

// A measurement: bytes of text, and the seconds that they take.
struct Point {
  double bytes = 0;
  double seconds = 0;
};

// The cost of a run: linear interpolation between measured points, and `message` for each message more than the
// measured runs had. In serial modes at least the longest message / stream.
struct Cost {
  double call = 0;            // seconds of the shortest run
  double message = 0;         // seconds
  double message_len = 0;     // bytes of each message that was measured; 0: all text was one message
  double stream = 0;          // bytes a second of a single message; 0: the same as of several
  std::vector<Point> points;  // in ascending order of bytes; empty: not known

  bool known() const { return !points.empty(); }
  double seconds(double bytes) const;
  // Bytes a second of the longest text measured; 0: not known.
  double rate() const { return known() ? points.back().bytes / points.back().seconds : 0; }
};

// Slowdown of each engine when both run, relative to one by itself: they share memory and cores. 0: both together are
// never faster.
struct Together {
  double cpu = 0;
  double device = 0;

  bool pays() const { return cpu > 0 && device > 0; }
};

// The costs of one algorithm in one direction: on the CPU, and through a device from pageable and from pinned memory.
struct Rates {
  Cost cpu;
  Cost pageable, pinned;
  Together with_pageable{}, with_pinned{};

  const Cost& device(bool from_pinned) const { return from_pinned ? pinned : pageable; }
  const Together& together(bool from_pinned) const { return from_pinned ? with_pinned : with_pageable; }
};

class RateTable {
 public:
  RateTable();

  // `algorithm` is one of algorithms().
  Rates& at(const Algorithm& algorithm, Direction direction);
  const Rates& at(const Algorithm& algorithm, Direction direction) const;

 private:
  std::vector<Rates> entries_;
};

// The messages of a batch that share an algorithm and direction.
struct JobPart {
  const Algorithm* algorithm;
  Direction direction;
  std::size_t messages;
  std::size_t bytes;
  std::size_t longest;  // bytes of one message
};

std::vector<JobPart> describe(std::span<const Message> messages);

// Seconds that a share of a part takes, from 0 to 1 of its bytes and messages.
double seconds_of(const JobPart& part, const Cost& cost, double share = 1);

// Seconds that all parts take. pick(rates) gives the cost to use. Negative when the cost of a part is not known.
template <class Pick>
double seconds_of(std::span<const JobPart> job, const RateTable& table, Pick&& pick) {
  double total = 0;
  for (const JobPart& part : job) {
    const Cost& cost = pick(table.at(*part.algorithm, part.direction));
    if (!cost.known()) return -1;
    total += seconds_of(part, cost);
  }
  return total;
}

// Both engines share a batch if that takes at most this much of the better engine's own time. Measurements may be
// off by half of the tenth, and sharing is still no slower.
inline constexpr double worth_sharing = 0.9;

// The share of the bytes with which the CPU ends at the same time as the device, and the seconds that both take.
struct Balance {
  double cpu_share;
  double seconds;
};

// together.pays() must hold.
Balance find_balance(const JobPart& part, const Cost& cpu, const Cost& device, const Together& together);

// The best value of a policy.
struct PolicyChoice {
  int device;  // as the engine numbers it; of_transfer: for all devices
  std::string name;
  std::string value;
  double rate;             // bytes a second with this value
  double rate_of_default;  // and with the default

  static constexpr int of_transfer = -1;
};

struct Tuning {
  std::string origin = "shipped defaults and a rule of thumb: nothing was measured here, `warpcipher tune` does";
  std::string warning;  // why a cache was not taken; empty when all is well
  std::vector<PolicyChoice> choices;
  std::optional<RateTable> rates;
};

// The tuning in use. The first call in the process reads the cache and uses it. A cache that cannot be read or is
// damaged throws nothing: the defaults hold, and `warning` says why.
std::shared_ptr<const Tuning> current_tuning();

// Replaces the tuning in use. Ignores choices of unknown devices, policies or values.
void use_tuning(Tuning tuning);

// --- the cache ---

// The scope of the measurements: the version of the library, processor, GPUs, the number of GPUs that host data
// are dealt to, driver. Starts the driver. Throws Error{invalid_argument} when the user's choice of GPUs cannot be
// read.
std::string describe_machine();

// The file for this machine, in $XDG_CACHE_HOME/warpcipher or ~/.cache/warpcipher; empty without a home.
std::string tuning_path(std::string_view machine);

// Lines of text, the last a checksum.
std::string to_text(const Tuning& tuning, std::string_view machine);

// Throws Error{invalid_argument} that names the fault of a text that to_text() did not write, or not for
// `machine`.
Tuning parse_tuning(std::string_view text, std::string_view machine);

// Writes the file, whole or not at all, and returns its path. Throws Error{engine_failure} that says why not.
std::string save_tuning(const Tuning& tuning);

// Removes the file of this machine; false when there was none. The defaults hold from now on.
bool forget_tuning();

}  // namespace warpcipher
