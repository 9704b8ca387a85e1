// SPDX-License-Identifier: Apache-2.0
// Decryption of CBC, CFB and CFB8 in place may overwrite the ciphertext before a tile before the tile is decrypted. So
// that ciphertext is saved first.
#pragma once

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
struct Algorithm;
}

namespace warpcipher::cuda {

// Fills saved_ciphertext[t], in device memory, for every tile t with the block before it, or the IV.
void save_ciphertext(const Device& device, Stream stream, const Algorithm& algorithm, const TileList& list,
                     Block* saved_ciphertext);

// Whether decryption of the algorithm reads the block before.
bool reads_previous_block(const Algorithm& algorithm, Direction direction);

}  // namespace warpcipher::cuda
