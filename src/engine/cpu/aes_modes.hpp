// SPDX-License-Identifier: Apache-2.0
// AES in every mode but GCM, a piece at a time.
#pragma once

#include "batch/message.hpp"
#include "engine/cpu/aes_key.hpp"
#include "engine/cpu/piece.hpp"

namespace warpcipher {

// Transforms `piece` of `m` with one pass of libcrypto. Pieces of a message may run in any order and at the same time
// when the mode is parallel in this direction; else the piece must be the whole message.
void run_aes_piece(AesKey& key, const Message& m, const Piece& piece);

}  // namespace warpcipher
