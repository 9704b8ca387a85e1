// SPDX-License-Identifier: Apache-2.0
// Copies and wipes of host memory by all cores: one core moves far fewer bytes a second than a GPU's link.
#pragma once

#include <cstddef>
#include <span>

namespace warpcipher {

struct CopyRange {
  void* to;
  const void* from;
  std::size_t len;
};

// Copies ranges of which none overlaps another's target. Few bytes are copied by the calling thread.
void copy_in_parallel(std::span<const CopyRange> ranges);

void wipe_in_parallel(void* memory, std::size_t len) noexcept;

}  // namespace warpcipher
