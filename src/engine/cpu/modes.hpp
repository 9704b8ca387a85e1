// SPDX-License-Identifier: Apache-2.0
// The modes of the CPU engine, but GCM (aes_gcm.hpp) and ChaCha20 (chacha.hpp).
#pragma once

#include <cstddef>
#include <span>

#include "engine/cpu/aes_key.hpp"
#include "engine/cpu/piece.hpp"
#include "message/message.hpp"

namespace warpcipher {

// --- AES, a piece at a time, by own code or by libcrypto (aes_modes.cpp) ---------------------------------------------

// Transforms `piece` of `m`. Pieces of a message may run in any order and at the same time when the mode is parallel in
// this direction; else the piece must be the whole message. By the code that rule.hpp says.
void run_aes_piece(AesKey& key, const Message& m, const Piece& piece);

// The work of both. `code` is one of cpu::aes_lanes_list(), the same in all calls with that key; the mode is ECB, CTR,
// XTS, CFB8, or CBC or CFB in decryption.
void run_own_piece(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);
void run_libcrypto_piece(AesKey& key, const Message& m, const Piece& piece);

// Own code's two ways to store: so that the next reader finds the text in the cache, or past it, as is_past_cache()
// chooses. Past it, piece.out is a multiple of 16 bytes and not piece.in.
void run_in_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);
void run_past_cache(const cpu::AesLanes& code, AesKey& key, const Message& m, const Piece& piece);

// --- AES in serial modes, many messages on one core (aes_serial.cpp) -------------------------------------------------
//
// CBC and CFB encryption and OFB: each message is bound by the latency of its blocks, so several go side by side, and
// when one ends the next takes its lane.

// Messages of that algorithm and direction that go side by side; 1: libcrypto takes them one by one.
std::size_t aes_serial_lanes(const Algorithm& algorithm, Direction direction);

// Runs messages of one algorithm and direction of which more than one goes side by side.
void run_aes_serial(std::span<const Message* const> messages);

// --- AEADs of AES but GCM (ccm.cpp, gcm_siv.cpp) ---------------------------------------------------------------------
//
// AES-CCM (SP 800-38C) is made of the engine's modes: the MAC is the last block of CBC encryption, the text counter
// mode. AES-GCM-SIV (RFC 8452) is own code where the processor has the instructions, else libcrypto's AES.

// A message: invalid_tag, and a wiped `out`, where the tag does not match.
Status run_ccm_message(const Message& m);
Status run_gcm_siv_message(const Message& m);

// The work of both. All messages of a key go to the same one, and `code` is the same in all calls with it.
Status run_gcm_siv_by_own(const cpu::GcmLanes& code, const Message& m);
Status run_gcm_siv_by_libcrypto(const Message& m);

// --- DES and triple DES, bitsliced (des_modes.cpp) -------------------------------------------------------------------
//
// Long texts many blocks at once, serial modes many messages at once. No schedule is kept with the key: expanding one
// costs about as much as one group of blocks, and takes 18 KiB.

// The most messages that run_des_serial does at the price of one.
std::size_t des_serial_lanes();

// Transforms `piece` of `m`, whose mode is parallel in its direction. Pieces may run in any order and at the same time.
void run_des_piece(const Message& m, const Piece& piece);

// Whole messages of one algorithm and direction whose mode is serial in it; best sorted by length, and
// des_serial_lanes() or more of them.
void run_des_serial(std::span<const Message* const> messages);

}  // namespace warpcipher
