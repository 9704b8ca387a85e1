// SPDX-License-Identifier: Apache-2.0
// One batch in host memory on two engines at the same time: its front goes through a device, the CPU does the rest. A
// message across the border is cut there (cutter.hpp has the chaining values), and its tag is computed from the tags of
// its parts (piece_tags.hpp).
//
//   messages    [ 0 ][ 1 ][    2   .     ][ 3 ]
//   device      [ 0 ][ 1 ][ 2 front ]                several devices: dealt to them in pieces (transfer_ring.hpp)
//   CPU                             [ 2 rest ][ 3 ]
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "flow/cutter.hpp"

namespace warpcipher {

struct Shares {
  std::vector<Part> device, cpu;
};

// The first `device_len` bytes of text for the device; less where a message may not be cut, and cuts are at multiples
// of 256 in a message. Chaining values are read here, so both shares may then run at once, in place.
Shares share_out(std::span<const Message> messages, std::size_t device_len);

// The bytes of a batch for the device when the CPU has `cpu_share` of them, from 0 to 1.
std::size_t device_len(std::span<const Message> messages, double cpu_share);

// Seconds that each engine worked.
struct ShareSeconds {
  double device = 0;
  double cpu = 0;
};

// Runs messages that have passed check_messages on both engines. Wipes each text whose tag does not match. When an
// engine throws, waits for the other and wipes each text that has a tag to check.
ShareSeconds run_on_both(DeviceEngine& device, Engine& cpu, std::span<const Message> messages,
                         std::span<Status> statuses, std::size_t device_len);

}  // namespace warpcipher
