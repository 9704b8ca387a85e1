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
// transfer_modes.hpp has the modes in which texts travel. Contiguous sectors (contiguous_runs.hpp) are one text: the
// device is told the first sector and their number.
#pragma once

#include <cstddef>
#include <span>

#include "engine/device_engine.hpp"
#include "flow/transfer_settings.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Zeros the text at out, on all cores.
void wipe_text(const Message& message);

// Zeros every text that must not be seen before its tag is checked: after a run that failed half-way.
void wipe_unverified(std::span<const Message> messages);

// Runs messages in host memory on `engine`. They have passed check_messages. Short messages share pieces, long ones are
// cut where their mode allows it, and a long message of a serial mode is on the device as a whole. Returns when all
// results are in host memory. Wipes each text whose tag does not match; after an exception, each text that has a tag to
// check.
void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses);
void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        const TransferSettings& settings);

}  // namespace warpcipher
