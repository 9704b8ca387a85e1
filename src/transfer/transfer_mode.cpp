// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer_mode.hpp"

#include <vector>

#include "transfer/copy.hpp"

namespace warpcipher {
namespace {

// Two allocations of the caller's may be adjacent, and the driver refuses a copy across their border. Then each range
// is copied by itself.
template <class Copy>
void copy_merged(CopyLists& lists, Copy&& copy) {
  lists.merged.clear();
  for (const DeviceCopy& range : lists.ranges) append_range(lists.merged, range);
  try {
    copy(lists.merged);
  } catch (const Error&) {
    std::erase_if(lists.ranges, [](const DeviceCopy& range) { return range.len == 0; });
    if (lists.merged.size() == lists.ranges.size()) throw;
    copy(lists.ranges);
  }
}

}  // namespace

void copy_ranges_in(const PieceTransfer& t) {
  copy_merged(t.lists, [&](std::span<const DeviceCopy> copies) { t.engine.copy_all_to_device(copies, t.stream); });
}

void copy_ranges_out(const PieceTransfer& t) {
  copy_merged(t.lists, [&](std::span<const DeviceCopy> copies) { t.engine.copy_all_to_host(copies, t.stream); });
}

}  // namespace warpcipher
