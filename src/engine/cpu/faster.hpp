// SPDX-License-Identifier: Apache-2.0
// The choice between own code and libcrypto for a long text: it depends on the processor and on libcrypto, so both are
// timed, once in a process.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace warpcipher {

inline constexpr std::size_t timed_len = 32768;

// Whether `own` takes no longer than `other`. The least of five times counts: whatever else runs makes a time longer.
template <class Own, class Other>
bool is_faster(Own&& own, Other&& other) {
  using Clock = std::chrono::steady_clock;
  Clock::duration by_own = Clock::duration::max(), by_other = by_own;
  for (int i = 0; i < 5; ++i) {
    const Clock::time_point start = Clock::now();
    own();
    const Clock::time_point middle = Clock::now();
    other();
    by_own = std::min(by_own, middle - start);
    by_other = std::min(by_other, Clock::now() - middle);
  }
  return by_own <= by_other;
}

}  // namespace warpcipher
