// SPDX-License-Identifier: Apache-2.0
// What the GPU derives from the key and the nonce of each message, a lane a message.
#pragma once

#include <cstdint>

#include "engine/cuda/chacha/inputs.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"

namespace warpcipher::cuda::chacha {

struct Preparation {
  KeySource source;
  std::uint32_t messages;
  KeyStream* streams;  // of each message, to be written; nullptr: they are not needed
  Block* r;            // AEADs: the halves of its one-time key (RFC 8439, section 2.6); nullptr: likewise
  Block* s;
};

// XChaCha20: by HChaCha20 first.
void prepare(const Device& device, Stream stream, const Preparation& preparation);

// The powers of each r.
void make_factors(const Device& device, Stream stream, const Block* r, const Factors& factors);

}  // namespace warpcipher::cuda::chacha
