// SPDX-License-Identifier: Apache-2.0
// Removes PKCS#7 padding (RFC 5652, section 6.3) from decrypted messages in device memory, one message in each lane.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
struct Algorithm;
}

namespace warpcipher::cuda {

// lengths[i] = the bytes of padding at the end of message i, or 0 if its padding is wrong: then its text is wiped.
// Every byte of the last block is read, so the time reveals only which messages failed. Texts are whole blocks of 8 or
// 16 bytes, at least one; their units are blocks.
void take_padding_off(const Device& device, Stream stream, const MessageView* views, std::uint32_t messages,
                      std::uint32_t* lengths);

// --- Zeros in place of texts that were decrypted before their tags had been checked, and whose tags are wrong.
// verdicts: device memory, a word for each message; 0: its tag is wrong. unit_len: bytes of a unit of the tiles, a
// multiple of 16. Later work of the stream sees zeros.
void wipe_forged(const Device& device, Stream stream, const TileList& list, std::uint32_t unit_len,
                 const std::uint32_t* verdicts);

// --- Decryption of CBC, CFB and CFB8 in place may overwrite the ciphertext before a tile before the tile is decrypted.
// So that ciphertext is saved first. Fills saved_ciphertext[t], in device memory, for every tile t with the block
// before it, or the IV.
void save_ciphertext(const Device& device, Stream stream, const Algorithm& algorithm, const TileList& list,
                     Block* saved_ciphertext);

// Whether decryption of the algorithm reads the block before.
bool reads_previous_block(const Algorithm& algorithm, Direction direction);

}  // namespace warpcipher::cuda
