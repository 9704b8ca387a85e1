// SPDX-License-Identifier: Apache-2.0
// AES in every mode but GCM, a piece at a time, by this library's own code or by libcrypto, whichever is faster.
#pragma once

#include "engine/cpu/aes_key.hpp"
#include "engine/cpu/piece.hpp"
#include "message/message.hpp"

namespace warpcipher {

// Transforms `piece` of `m`. Pieces of a message may run in any order and at the same time when the mode is parallel in
// this direction; else the piece must be the whole message.
void run_aes_piece(AesKey& key, const Message& m, const Piece& piece);

// The library's own code if it is to take pieces of `len` bytes of that mode, else nullptr. It takes short ones, since
// a call of libcrypto takes 0.3 us, and others where it is found to be faster or where there is no libcrypto.
const cpu::AesLanes* own_aes(Mode mode, Direction direction, std::size_t len);

// What the two do. `code` is one of cpu::aes_lanes_list(), the same in all calls with that key; the mode is ECB, CTR,
// XTS, CFB8, or CBC or CFB in decryption.
void run_own_piece(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);
void run_libcrypto_piece(AesKey& key, const Message& m, const Piece& piece);

// Own code's two ways to store: so that the next reader finds the text in the cache, or past it, as is_past_cache()
// chooses. Past it, piece.out is a multiple of 16 bytes and not piece.in.
void run_in_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);
void run_past_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);

}  // namespace warpcipher
