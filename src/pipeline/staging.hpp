// SPDX-License-Identifier: Apache-2.0
// Brings host data to a device engine and back: pieces go round a ring of page-locked buffers, each with its own
// stream, so that the copies of one piece overlap with the kernels of another (Iwai 2012, section 6.4, with as many
// parts as the data has pieces).
#pragma once

#include <cstddef>
#include <span>

#include "batch/message.hpp"
#include "engine/device_engine.hpp"

namespace warpcipher {

// Bytes of one piece, and pieces on their way at once. 32 MiB hides launch and copy latency many times over; three
// pieces keep both copy directions and the kernels busy.
inline constexpr std::size_t staging_piece_len = std::size_t{32} << 20;
inline constexpr std::size_t staging_pieces = 3;

// Runs messages that lie in host memory on `engine`; they have passed check_messages. Short messages are packed into
// pieces, long ones are cut where their mode allows it, and a long message of a mode that cannot be cut (GCM, or a
// serial mode) is held on the device whole. Returns when all results are in host memory.
void run_through_device(DeviceEngine& engine, std::span<const Message> messages, std::span<Status> statuses,
                        std::size_t piece_len = staging_piece_len);

}  // namespace warpcipher
