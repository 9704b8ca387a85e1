// SPDX-License-Identifier: Apache-2.0
// When CBC, CFB or CFB8 is decrypted in place, the ciphertext before a tile may be gone by the time the tile is worked
// on: it is saved first.
#pragma once

#include "engine/cuda/gpu.hpp"
#include "engine/cuda/message_view.hpp"
#include "engine/stream.hpp"
#include "mode/mode.hpp"

namespace warpcipher {
struct Algorithm;
}

namespace warpcipher::cuda {

struct GroupRun;

// Fills chains[t], in device memory, for every tile t with the block before it, or the IV.
void save_chains(const Device& device, Stream stream, const Algorithm& algorithm, const TileList& list,
                 std::uint32_t tile_units, Block* chains);

// Whether decryption of the algorithm looks at the block before.
bool chains_blocks(const Algorithm& algorithm, Direction direction);

// True when the mode chains blocks and a message is decrypted in place.
bool needs_chains(const GroupRun& run);

}  // namespace warpcipher::cuda
