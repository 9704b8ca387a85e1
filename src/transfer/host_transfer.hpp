// SPDX-License-Identifier: Apache-2.0
// Brings host data to a device engine and back (Iwai 2012, section 6.4, with as many parts as the data has pieces).
// Pieces go round a ring of slots, each with a stream of its own, so that while one piece is copied to its device
// others are being encrypted, copied back, and moved by the cores:
//
//   cores       in 0  in 1  in 2  in 3        out 0 in 4  out 1 in 5 ...
//   to device         [ 0  ][ 1  ][ 2  ][ 3  ]            [ 4  ]
//   kernels                 [0]   [1]   [2]   [3]
//   from device                [ 0  ][ 1  ][ 2  ][ 3  ]
//
// Streams by slot, not by kind of work: within a piece everything is in order anyway, between pieces nothing is, and a
// GPU's copy engines and multiprocessors take the work of different streams as it gets ready. Streams by kind would
// need two events a piece to say the same. From page-locked memory of the caller pieces travel without the cores. Of
// many short texts there a copy engine brings in those that lie close together (can_coalesce.hpp), a kernel the others,
// and a kernel writes what comes back to its places. Sectors in a row (contiguous_runs.hpp) are one text, of which the
// device is told the first and the number.
#pragma once

#include <cstddef>
#include <span>

#include "batch/message.hpp"
#include "engine/device_engine.hpp"
#include "transfer/pipeline_shape.hpp"

namespace warpcipher {

// Zeros the text at out, on all cores.
void wipe_text(const Message& message);

// The same for every text whose tag must be looked at before anyone sees it: for a run that failed in the middle.
void wipe_unverified(std::span<const Message> messages);

// Runs messages that lie in host memory on `engine`; they have passed check_messages. Short messages are packed into
// pieces, long ones are cut where their mode allows it, and a long message of a serial mode is held on the device
// whole. Returns when all results are in host memory. A text whose tag does not match is wiped by then, as is every
// text to be checked when something throws.
void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses);
void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        const PipelineShape& shape);

}  // namespace warpcipher
