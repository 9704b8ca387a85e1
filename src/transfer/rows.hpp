// SPDX-License-Identifier: Apache-2.0
// Messages that lie in a row, one behind another in the caller's memory, so that they travel as one range; and among
// them sectors, data units of XTS that are alike, so that the first and their number tell a device of all.
#pragma once

#include <cstddef>
#include <span>

#include "batch/message.hpp"

namespace warpcipher {

// Whether text and result of `m` begin where those of `before` end.
bool follows(const Message& before, const Message& m);

// Whether they are sectors of one row: besides, of one key, direction and length, which keeps them aligned in a slot,
// and IVs in a row.
bool follows_as_sector(const Message& before, const Message& m);

// What the messages of a batch come to: a million of them are too many for one thread to look at again and again.
struct Extent {
  std::size_t text_len = 0;    // bytes in
  std::size_t output_len = 0;  // and out
  std::size_t room = 0;        // that slots need for them
  std::size_t uncut = 0;       // and for the one among them that needs most and cannot be cut
  bool in_a_row = true;        // each follows the one before it
  bool are_sectors = true;     // as a sector
};

// Found on all cores. There is a message.
Extent find_extent(std::span<const Message> messages);

}  // namespace warpcipher
