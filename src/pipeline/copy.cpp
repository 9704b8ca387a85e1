// SPDX-License-Identifier: Apache-2.0
#include "pipeline/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <vector>

#include "core/thread_pool.hpp"
#include "core/wipe.hpp"

namespace warpcipher {
namespace {

// Less than this is moved in less time than another thread takes to wake.
constexpr std::size_t least_shared_len = std::size_t{256} << 10;
constexpr std::size_t least_share_len = std::size_t{64} << 10;

// Bytes that a thread takes at a time: a few for each, so that they end together.
std::size_t share_len(std::size_t total, std::size_t threads) {
  return std::max(least_share_len, total / (4 * threads));
}

void copy(const CopyRange& range, std::size_t begin, std::size_t end) {
  std::memcpy(static_cast<std::uint8_t*>(range.to) + begin, static_cast<const std::uint8_t*>(range.from) + begin,
              end - begin);
}

// Where in the ranges a share begins.
struct Position {
  std::size_t range;
  std::size_t offset;
};

std::vector<Position> shares_of(std::span<const CopyRange> ranges, std::size_t share) {
  std::vector<Position> starts{{0, 0}};
  std::size_t filled = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    std::size_t offset = 0;
    while (filled + (ranges[i].len - offset) > share) {
      offset += share - filled;
      filled = 0;
      starts.push_back({i, offset});
    }
    filled += ranges[i].len - offset;
  }
  starts.push_back({ranges.size(), 0});
  return starts;
}

void copy_share(std::span<const CopyRange> ranges, Position from, Position to) {
  for (std::size_t i = from.range; i <= to.range && i < ranges.size(); ++i) {
    const std::size_t begin = i == from.range ? from.offset : 0;
    const std::size_t end = i == to.range ? to.offset : ranges[i].len;
    if (end > begin) copy(ranges[i], begin, end);
  }
}

}  // namespace

void copy_in_parallel(std::span<const CopyRange> ranges) {
  std::size_t total = 0;
  for (const CopyRange& range : ranges) total += range.len;
  ThreadPool& pool = ThreadPool::instance();
  if (total < least_shared_len || pool.threads() == 1) {
    for (const CopyRange& range : ranges) {
      if (range.len != 0) copy(range, 0, range.len);
    }
    return;
  }
  const std::vector<Position> starts = shares_of(ranges, share_len(total, pool.threads()));
  pool.parallel_for(starts.size() - 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) copy_share(ranges, starts[i], starts[i + 1]);
  });
}

void wipe_in_parallel(void* memory, std::size_t len) noexcept {
  auto* const bytes = static_cast<std::uint8_t*>(memory);
  if (len >= least_shared_len) {
    try {
      ThreadPool& pool = ThreadPool::instance();
      pool.parallel_for(len, share_len(len, pool.threads()),
                        [&](std::size_t begin, std::size_t end) { secure_wipe(bytes + begin, end - begin); });
      return;
    } catch (const std::exception&) {  // no memory for threads: alone, then
    }
  }
  secure_wipe(bytes, len);
}

}  // namespace warpcipher
