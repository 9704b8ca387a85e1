// SPDX-License-Identifier: Apache-2.0
// Which short texts in page-locked memory travel to a device in one range, so that a copy engine takes many with one
// copy:
//
//   the caller's   [text 0].tag.[text 1].tag.[text 2]..............[text 9].tag.[text 10]
//   on the device  [text 0].....[text 1].....[text 2]  [text 9].....[text 10]
//
// What lies in a small gap goes along, unread: such a range stays within one allocation, its copy on the device is
// wiped as all there is, and nothing of a gap ever travels back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "batch/message.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {

// A text is at least so many times as long as the gap behind it, which is at most a page: else the link would move too
// much for naught.
inline constexpr std::size_t least_text_to_gap = 8;
inline constexpr std::size_t most_gap = 4096;

// Whether a text goes on the range that ends with the text of `before`. `allocation`: what the device reaches of the
// memory around that one. Distances are such that on the device blocks stay aligned and results have room.
inline bool goes_on(const Message& before, const Message& m, const AddressRange& allocation) {
  const auto begin = reinterpret_cast<std::uintptr_t>(before.in), next = reinterpret_cast<std::uintptr_t>(m.in);
  if (before.in_len == 0 || m.in_len == 0 || next < begin) return false;
  const std::size_t distance = next - begin;
  const std::size_t room = std::max(before.in_len, before.output_len());
  const std::size_t gap = std::min(before.in_len / least_text_to_gap, most_gap);
  return distance >= room && distance - before.in_len <= gap && distance % 16 == 0 && allocation.holds(m.in, m.in_len);
}

}  // namespace warpcipher
