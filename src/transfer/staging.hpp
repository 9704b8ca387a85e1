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
#include <string_view>
#include <vector>

#include "batch/message.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {

// How host data travel. Never changes results.
struct PipelineShape {
  std::size_t piece_len;   // bytes of a piece, a multiple of 256
  std::size_t slots;       // pieces of one device on their way at once
  std::size_t devices;     // that pieces are dealt to, of those that the engine offers
  std::size_t direct_len;  // as many bytes in a row travel without the cores' help when they are page-locked
  std::size_t helpers;     // cores that are asked to help with the copies
  // A range of short texts that is as long is a copy engine's. H200: shorter ones cost the host more than they save.
  std::size_t range_len = std::size_t{64} << 10;
};

// The shape for `total` bytes in so many messages on an engine that offers `devices` devices: pieces short enough that
// there are several to overlap and long enough to be worth their launches, a further device for as many bytes as keep
// it busy.
PipelineShape choose_shape(std::size_t total, std::size_t devices, std::size_t messages = 1);

// What the tuner may choose for every shape: "piece_MiB", the longest piece, and "slots". As those of a device.
std::vector<Policy> pipeline_policies();
void choose_pipeline_policy(std::string_view name, std::string_view value);

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
