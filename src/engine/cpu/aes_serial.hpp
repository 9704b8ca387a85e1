// SPDX-License-Identifier: Apache-2.0
// CBC and CFB encryption and OFB of many AES messages on one core: each is bound by the latency of its blocks, so
// several go side by side (aes_serial_lanes.hpp), and when one ends the next takes its lane.
#pragma once

#include <cstddef>
#include <span>

#include "message/message.hpp"

namespace warpcipher {

// Messages of that algorithm and direction that go side by side; 1: libcrypto takes them one by one.
std::size_t aes_serial_lanes(const Algorithm& algorithm, Direction direction);

// Runs messages of one algorithm and direction of which more than one goes side by side.
void run_aes_serial(std::span<const Message* const> messages);

}  // namespace warpcipher
