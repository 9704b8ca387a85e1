// SPDX-License-Identifier: Apache-2.0
// DES and triple DES in every mode, bitsliced: long texts many blocks at once, serial modes many messages at once.
//
// No schedule is kept with the key: expanding one costs about as much as one group of blocks, and takes 18 KiB.
#pragma once

#include <cstddef>
#include <span>

#include "engine/cpu/piece.hpp"
#include "message/message.hpp"

namespace warpcipher {

// The most messages that run_des_serial does at the price of one.
std::size_t des_serial_lanes();

// Transforms `piece` of `m`, whose mode is parallel in its direction. Pieces may run in any order and at the same time.
void run_des_piece(const Message& m, const Piece& piece);

// Whole messages of one algorithm and direction whose mode is serial in it; best sorted by length, and
// des_serial_lanes() or more of them.
void run_des_serial(std::span<const Message* const> messages);

}  // namespace warpcipher
