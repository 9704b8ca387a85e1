// SPDX-License-Identifier: Apache-2.0
// ChaCha20-Poly1305 (RFC 8439, section 2.8): tags, and texts with their tags.
#pragma once

#include <cstdint>

#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::chacha {

// The best number of Poly1305's blocks in a chunk, for a batch of about `blocks`.
std::uint64_t chunk_blocks_for(const Device& device, std::uint64_t blocks);

// AeadKernel::chunks: texts and tags. Where a verdict is 0, the text is zeros: it has been decrypted by then, and is
// wiped before later work of the stream begins.
void run_chunks(const Device& device, Stream stream, const Batch& batch, const Tags& tags, bool encrypting);

}  // namespace warpcipher::cuda::chacha
