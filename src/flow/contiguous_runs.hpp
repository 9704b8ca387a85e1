// SPDX-License-Identifier: Apache-2.0
// Contiguous runs: messages whose texts, and whose results, follow each other in the caller's memory without a gap, so
// that one copy takes all of them. Some runs are sectors, XTS data units of one kind: the first one and their number
// then describe all of them to a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/device_engine.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Whether text and result of `m` begin where those of `before` end.
bool is_contiguous(const Message& before, const Message& m);

// Whether `m` is the sector after `before`: contiguous, with contiguous IVs, and with the same key, direction and
// length. The length keeps sectors aligned in device memory.
bool is_next_sector(const Message& before, const Message& m);

// A summary of the messages of a batch, made once: for a million messages each pass of one thread costs too much.
struct Extent {
  std::size_t text_len = 0;    // bytes of text in
  std::size_t output_len = 0;  // bytes of text out
  std::size_t room = 0;        // device memory that they need, in bytes
  std::size_t uncut = 0;       // and the most that a message needs which cannot be cut
  bool contiguous = true;      // all messages are one contiguous run
  bool are_sectors = true;     // of sectors
};

// Uses all cores. There is at least one message.
Extent find_extent(std::span<const Message> messages);

// Which short texts in page-locked memory are coalesced into one range, which a copy engine brings to the device in one
// copy:
//
//   the caller's   [text 0].tag.[text 1].tag.[text 2]..............[text 9].tag.[text 10]
//   on the device  [text 0].....[text 1].....[text 2]  [text 9].....[text 10]
//
// Bytes in the gap are copied and never read. A range stays within one allocation, its copy on the device is wiped with
// everything else there, and no byte of a gap is copied back.

// A text is at least this many times as long as the gap after it, and no gap is longer than a page: otherwise the link
// would move too many bytes that nobody reads.
inline constexpr std::size_t least_text_to_gap = 8;
inline constexpr std::size_t most_gap = 4096;

// Whether the text of `m` extends the range that ends with the text of `before`. `allocation`: the pinned allocation
// that holds the latter. On the device the texts keep their distance, so it must keep blocks aligned and leave room for
// the result.
inline bool can_coalesce(const Message& before, const Message& m, const AddressRange& allocation) {
  const auto begin = reinterpret_cast<std::uintptr_t>(before.in), next = reinterpret_cast<std::uintptr_t>(m.in);
  if (before.in_len == 0 || m.in_len == 0 || next < begin) return false;
  const std::size_t distance = next - begin;
  const std::size_t room = std::max(before.in_len, before.output_len());
  const std::size_t gap = std::min(before.in_len / least_text_to_gap, most_gap);
  return distance >= room && distance - before.in_len <= gap && distance % 16 == 0 && allocation.holds(m.in, m.in_len);
}

}  // namespace warpcipher
