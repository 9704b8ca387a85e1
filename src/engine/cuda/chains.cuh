// SPDX-License-Identifier: Apache-2.0
// When CBC, CFB or CFB8 is decrypted in place, the ciphertext before a tile may be gone by the time the tile is worked
// on: it is saved first.
#pragma once

#include "engine/cuda/message_view.cuh"

namespace warpcipher::cuda {

// Fills chains[t] for every tile t of the group with the block before it, or the IV. views and first_tile are device
// memory; block_len and tile_len are bytes.
void save_chains(const GroupRun& run, const MessageView* views, const std::uint64_t* first_tile,
                 std::uint32_t tile_units, Block* chains);

// True when the mode chains blocks and a message is decrypted in place.
bool needs_chains(const GroupRun& run);

}  // namespace warpcipher::cuda
