// SPDX-License-Identifier: Apache-2.0
#include "pipeline/rates.hpp"

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
    // Neighbours are mostly alike: the last part is looked at first.
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

}  // namespace warpcipher
