// SPDX-License-Identifier: Apache-2.0
// Speculative launches: the host launches the kernel for the text of a batch before it knows the plan. The GPU makes
// the plan (summary.hpp). If the host waited for it and then launched a kernel, the GPU would be idle for 30 us. So the
// host assumes that all messages have the same length and launches the kernel for that; the kernel checks the
// assumption:
//
//   host     ... plan, text | waits for the mailbox                     | holds: done    no: text as the summary says
//   device   plan ........... text: fills the mailbox; holds? no: ends
//
// If the summary is bad, or the assumption does not hold, nothing is written.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace warpcipher::cuda {

// The host's needs before it starts the work. The types suit atomic operations.
struct BatchSummary {
  std::uint32_t bad;        // not 0: some message is wrong, or may be
  std::uint32_t failed;     // messages whose tag or padding is wrong; set after they have run
  std::uint32_t unaligned;  // not 0: some text, or where it goes, is at no multiple of 16
  unsigned long long units;
  unsigned long long most_units;
  unsigned long long hash_blocks;  // of AAD and text
  unsigned long long most_hash_blocks;
  unsigned long long tiles;
  unsigned long long end_units;   // counter modes: of ends that tiles lack
  unsigned long long chunks;      // GCM
  unsigned long long in_rows;     // GCM: messages without chunks (ColumnView::least_chunked)
  unsigned long long row_blocks;  // likewise: their AAD and text
  unsigned long long first_in;    // sectors (aes/hybrid_rows.hpp): where the first begins
  unsigned long long first_out;
};

// A kernel's report to the host, in page-locked memory.
struct Mailbox {
  BatchSummary summary;
  std::uint32_t is_there;  // not 0: all of it
};

struct Speculation {
  BatchSummary* summary = nullptr;  // nullptr: the launch is not speculative
  Mailbox* mailbox = nullptr;
  std::uint64_t least_units = 0;    // of all messages
  std::uint64_t most_units = 0;     // of one
  std::uint32_t units_of_tile = 0;  // not 0: the units of a tile; more than half of them must exist
  bool is_aligned = false;          // all texts must be
  // Not 0: another kernel on the same stream takes batches of this many units, in messages of no more than others_most.
  // That kernel fills the mailbox: `mailbox` is nullptr here.
  std::uint64_t others_units = 0;
  std::uint64_t others_most = 0;
};

WARPCIPHER_HD constexpr bool holds(const Speculation& speculation, const BatchSummary& summary) {
  return summary.bad == 0 && summary.units >= speculation.least_units && summary.most_units <= speculation.most_units &&
         2 * summary.units > speculation.units_of_tile * summary.tiles &&
         !(speculation.is_aligned && summary.unaligned != 0) &&
         (speculation.others_units == 0 || summary.units < speculation.others_units ||
          summary.most_units > speculation.others_most);
}

}  // namespace warpcipher::cuda
