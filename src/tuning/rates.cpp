// SPDX-License-Identifier: Apache-2.0
#include "tuning/rates.hpp"

#include <algorithm>

namespace warpcipher {
namespace {

std::size_t index_of(const Algorithm& algorithm, Direction direction) {
  const auto number = static_cast<std::size_t>(&algorithm - algorithms().data());
  return 2 * number + (direction == Direction::decrypt ? 1 : 0);
}

}  // namespace

double Cost::seconds(double bytes) const {
  Point before{0, call};
  for (const Point& point : points) {
    const double slope = std::max(0.0, point.seconds - before.seconds) / (point.bytes - before.bytes);
    if (bytes <= point.bytes || &point == &points.back()) return before.seconds + slope * (bytes - before.bytes);
    before = point;
  }
  return call;
}

RateTable::RateTable() : entries_(2 * algorithms().size()) {}

Rates& RateTable::at(const Algorithm& algorithm, Direction direction) {
  return entries_[index_of(algorithm, direction)];
}
const Rates& RateTable::at(const Algorithm& algorithm, Direction direction) const {
  return entries_[index_of(algorithm, direction)];
}

std::vector<JobPart> describe(std::span<const Message> messages) {
  std::vector<JobPart> parts;
  for (const Message& m : messages) {
    const Algorithm* const algorithm = &m.algorithm();
    // Neighbours are mostly alike: search from the last part.
    const auto found = std::find_if(parts.rbegin(), parts.rend(), [&](const JobPart& part) {
      return part.algorithm == algorithm && part.direction == m.direction;
    });
    JobPart& part = found != parts.rend() ? *found : parts.emplace_back(JobPart{algorithm, m.direction, 0, 0, 0});
    ++part.messages;
    part.bytes += m.in_len;
    part.longest = std::max(part.longest, m.in_len);
  }
  return parts;
}

double seconds_of(const JobPart& part, const Cost& cost, double share) {
  const double bytes = share * static_cast<double>(part.bytes);
  const double measured = cost.message_len > 0 ? bytes / cost.message_len : 0;
  const double more = std::max(0.0, share * static_cast<double>(part.messages) - measured);
  const double seconds = cost.seconds(bytes) + cost.message * more;
  return cost.stream > 0 ? std::max(seconds, static_cast<double>(part.longest) / cost.stream) : seconds;
}

// A larger share makes the CPU slower and the device faster, so bisection finds where they meet.
Balance find_balance(const JobPart& part, const Cost& cpu, const Cost& device, const Together& together) {
  double low = 0, high = 1;
  for (int i = 0; i < 20; ++i) {
    const double share = (low + high) / 2;
    const bool cpu_is_later =
        together.cpu * seconds_of(part, cpu, share) > together.device * seconds_of(part, device, 1 - share);
    (cpu_is_later ? high : low) = share;
  }
  return {low,
          std::max(together.cpu * seconds_of(part, cpu, low), together.device * seconds_of(part, device, 1 - low))};
}

}  // namespace warpcipher
