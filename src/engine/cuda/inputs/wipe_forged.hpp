// SPDX-License-Identifier: Apache-2.0
// Zeros in place of texts that were decrypted before their tags had been checked, and whose tags are wrong.
#pragma once

#include <cstdint>

#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda {

// verdicts: device memory, a word for each message; 0: its tag is wrong. unit_len: bytes of a unit of the tiles, a
// multiple of 16. Later work of the stream sees zeros.
void wipe_forged(const Device& device, Stream stream, const TileList& list, std::uint32_t unit_len,
                 const std::uint32_t* verdicts);

}  // namespace warpcipher::cuda
