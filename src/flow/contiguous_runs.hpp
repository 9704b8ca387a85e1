// SPDX-License-Identifier: Apache-2.0
// Contiguous runs: messages whose texts, and whose results, follow each other in the caller's memory without a gap, so
// that one copy takes all of them. Some runs are sectors, XTS data units of one kind: the first one and their number
// then describe all of them to a device.
#pragma once

#include <cstddef>
#include <span>

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

}  // namespace warpcipher
