// SPDX-License-Identifier: Apache-2.0
// ChaCha20, ChaCha20-Poly1305 and XChaCha20-Poly1305: by libcrypto, and by own code what is short, or all where
// libcrypto cannot be loaded.
#pragma once

#include "batch/message.hpp"
#include "engine/cpu/piece.hpp"

namespace warpcipher {

// Transforms `piece` of `m`, a message of ChaCha20. Pieces may run in any order and at the same time.
void run_chacha_piece(const Message& m, const Piece& piece);

// A message of an AEAD of ChaCha20: invalid_tag, and a wiped `out`, where the tag does not match.
Status run_chacha_message(const Message& m);

// What the two do. Own code also computes tags without a comparison (Message::compute_tag).
Status run_chacha_by_own(const Message& m);
Status run_chacha_by_libcrypto(const Message& m);

}  // namespace warpcipher
