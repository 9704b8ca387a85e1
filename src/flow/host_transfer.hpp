// SPDX-License-Identifier: Apache-2.0
// Brings host data to a device engine and back (Iwai 2012, section 6.4, with as many parts as the data has pieces).
// Pieces go round a ring of slots, each with a stream of its own. While one piece is copied to its device, others are
// encrypted, copied back, and copied by the cores:
//
//   cores       in 0  in 1  in 2  in 3        out 0 in 4  out 1 in 5 ...
//   to device         [ 0  ][ 1  ][ 2  ][ 3  ]            [ 4  ]
//   kernels                 [0]   [1]   [2]   [3]
//   from device                [ 0  ][ 1  ][ 2  ][ 3  ]
//
// There is a stream for each slot, not for each kind of work. Work within a piece is in order anyway, and pieces do not
// depend on each other; the copy engines and multiprocessors of a GPU take work of different streams as it gets ready.
// Streams for kinds of work would need two events a piece to say the same.
//
// transfer_modes.hpp has the modes in which texts travel. Contiguous sectors (piece.hpp) are one text: the
// device gets the first sector and their number.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/device_engine.hpp"
#include "flow/cutter.hpp"
#include "flow/transfer_settings.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Runs messages in host memory on `engine`. They have passed check_messages. Short messages share pieces, long ones are
// cut where their mode allows it, and a long message of a serial mode is on the device as a whole. Returns when all
// results are in host memory. Wipes each text whose tag does not match; after an exception, each text that has a tag to
// check. Settings without a piece_len are chosen.
void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        const TransferSettings& settings = {});

// One batch in host memory on two engines at the same time: its front goes through a device, the CPU does the rest. A
// message across the border is cut there (cutter.hpp has the chaining values), and its tag is computed from the tags of
// its parts (cutter.hpp).
//
//   messages    [ 0 ][ 1 ][    2   .     ][ 3 ]
//   device      [ 0 ][ 1 ][ 2 front ]                several devices: dealt to them in pieces (transfer_ring.hpp)
//   CPU                             [ 2 rest ][ 3 ]
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
