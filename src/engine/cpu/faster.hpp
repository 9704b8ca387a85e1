// SPDX-License-Identifier: Apache-2.0
// The choice between own code and libcrypto for a long text: it depends on the processor and on libcrypto, so both are
// timed, once in a process.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/error.hpp"

namespace warpcipher {

inline constexpr std::size_t timed_len = 32768;

// Whether own() takes no longer than other(). The least of five times counts: whatever else runs makes a time longer.
// It is a self-test too, as that of the engine has short texts alone: throws Error{engine_failure} unless the two have
// made the same bytes, at own_result and other_result.
template <class Own, class Other>
bool is_faster(const char* what, Own&& own, std::span<const std::uint8_t> own_result, Other&& other,
               std::span<const std::uint8_t> other_result) {
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
  if (!std::ranges::equal(own_result, other_result)) {
    throw Error(Status::engine_failure, std::string("self-test: ") + what +
                                            " of libcrypto and of this library make different bytes of one text");
  }
  return by_own <= by_other;
}

}  // namespace warpcipher
