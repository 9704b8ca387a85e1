// SPDX-License-Identifier: Apache-2.0
#include "flow/copy.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "core/thread_pool.hpp"
#include "core/wipe.hpp"

namespace warpcipher {
namespace {

// Bytes of a share: long enough to be worth an atomic operation, short enough that threads end together.
constexpr std::size_t copy_share_len = std::size_t{64} << 10;
// Waking another thread takes longer than wiping less than this.
constexpr std::size_t least_shared_wipe = std::size_t{256} << 10;

void copy(const DeviceCopy& range, std::size_t begin, std::size_t end) {
  std::memcpy(static_cast<std::uint8_t*>(range.to) + begin, static_cast<const std::uint8_t*>(range.from) + begin,
              end - begin);
}

}  // namespace

void append_range(std::vector<DeviceCopy>& ranges, const DeviceCopy& range) {
  if (range.len == 0) return;
  if (!ranges.empty()) {
    DeviceCopy& last = ranges.back();
    if (static_cast<std::uint8_t*>(last.to) + last.len == range.to &&
        static_cast<const std::uint8_t*>(last.from) + last.len == range.from) {
      last.len += range.len;
      return;
    }
  }
  ranges.push_back(range);
}

void CopyJob::start(const std::vector<DeviceCopy>& ranges) {
  ranges_ = ranges;
  find_shares();
  const std::size_t shares = starts_.size() - 1;
  left_.store(shares, std::memory_order_relaxed);
  taken_.store(std::uint64_t{shares} << 32, std::memory_order_release);
}

void CopyJob::find_shares() {
  starts_.clear();
  std::size_t filled = copy_share_len;  // bytes of the last share: the first range begins a new one
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    for (std::size_t offset = 0; offset < ranges_[i].len;) {
      if (filled == copy_share_len) {
        starts_.push_back({i, offset});
        filled = 0;
      }
      const std::size_t len = std::min(copy_share_len - filled, ranges_[i].len - offset);
      offset += len;
      filled += len;
    }
  }
  starts_.push_back({ranges_.size(), 0});
}

void CopyJob::copy_share(Position from, Position to) const {
  for (std::size_t i = from.range; i <= to.range && i < ranges_.size(); ++i) {
    const std::size_t begin = i == from.range ? from.offset : 0;
    const std::size_t end = i == to.range ? to.offset : ranges_[i].len;
    if (end > begin) copy(ranges_[i], begin, end);
  }
}

bool CopyJob::help() {
  // Threads that look for work must not contend for the counter of a job that has none.
  const std::uint64_t seen = taken_.load(std::memory_order_relaxed);
  if (static_cast<std::uint32_t>(seen) >= seen >> 32) return false;
  const std::uint64_t taken = taken_.fetch_add(1, std::memory_order_acquire);
  const auto share = static_cast<std::uint32_t>(taken);
  if (share >= taken >> 32) return false;
  copy_share(starts_[share], starts_[share + 1]);
  left_.fetch_sub(1, std::memory_order_release);
  return true;
}

void CopyJob::cancel() noexcept {
  const std::uint64_t taken = taken_.exchange(0, std::memory_order_acquire);
  const std::uint64_t shares = taken >> 32;
  left_.fetch_sub(static_cast<std::size_t>(shares - std::min<std::uint64_t>(shares, static_cast<std::uint32_t>(taken))),
                  std::memory_order_relaxed);
  while (!done()) std::this_thread::yield();
}

void wipe_in_parallel(void* memory, std::size_t len) noexcept {
  auto* const bytes = static_cast<std::uint8_t*>(memory);
  if (len >= least_shared_wipe) {
    try {
      ThreadPool& pool = ThreadPool::instance();
      pool.parallel_for(len, std::max(least_shared_wipe / 4, len / (4 * pool.threads())),
                        [&](std::size_t begin, std::size_t end) { secure_wipe(bytes + begin, end - begin); });
      return;
    } catch (const std::exception&) {  // no memory for threads: this one wipes all
    }
  }
  secure_wipe(bytes, len);
}

}  // namespace warpcipher
